//! Knee's parts of a kernel, and the hash by which a kernel with them is known.

use include_dir::{Dir, include_dir};
use knee_model::digest;

static CC: Dir<'static> = include_dir!("$CARGO_MANIFEST_DIR/cc");
pub(crate) const EDITS: &str = include_str!("../kernel/edit.sh");
pub(crate) const CONFIG: &str = include_str!("../kernel/config");
pub(crate) const MAKEFILE: &str = include_str!("../kernel/Makefile");

/// Files and folders of `cc/` that go into the kernel. Algorithms and path do not: the kernel's process loads them.
const PARTS: [&str; 6] = [
    "include/knee/contract.h",
    "include/knee/fixed.h",
    "include/knee/types.h",
    "host/native/knee",
    "host/module",
    "host/linux",
];

/// SHA-256 of everything of Knee's that goes into a kernel, and of its source.
pub(crate) fn hash_with(source_sha256: &str) -> String {
    let texts =
        [("source", source_sha256), ("edits", EDITS), ("config", CONFIG), ("Makefile", MAKEFILE)];
    let texts = texts.map(|(name, text)| (name.to_owned(), text.as_bytes())).into_iter();
    let named = texts.chain(parts());
    digest::of_parts(named.flat_map(|(name, bytes)| [name.into_bytes(), bytes.to_vec()]))
}

/// The files of `cc/` that go into the kernel, in the order of their names.
pub(crate) fn parts() -> Vec<(String, &'static [u8])> {
    let mut files: Vec<_> = PARTS.iter().filter_map(|part| CC.get_file(part)).collect();
    let mut folders: Vec<_> = PARTS.iter().filter_map(|part| CC.get_dir(part)).collect();
    while let Some(folder) = folders.pop() {
        folders.extend(folder.dirs());
        files.extend(folder.files());
    }
    let mut files: Vec<_> =
        files.into_iter().map(|f| (f.path().display().to_string(), f.contents())).collect();
    files.sort();
    files
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernel_holds_neither_algorithms_nor_path() {
        let names: Vec<_> = parts().into_iter().map(|(name, _)| name).collect();
        for part in PARTS {
            assert!(names.iter().any(|name| name.starts_with(part)), "{part}");
        }
        assert!(!names.iter().any(|name| name.contains("bpf") || name.contains("algorithms")));
    }
}
