//! Source trees of Linux: the parts that this host needs.

use knee_model::{
    HostError,
    failure::{doing, unavailable},
};
use std::{fs, path::Path};

/// The oldest version of Linux that the host takes.
const OLDEST: (u32, u32) = (6, 1);
const HELP: &str = "name a source tree of Linux from 6.1 on, or use debian:6.12";
/// The setting of the kernel without which its clock is the machine's.
const TIME_TRAVEL: &str = "UML_TIME_TRAVEL_SUPPORT";

/// Checks that `tree` is a source tree of Linux, new enough, with User-Mode Linux whose clock can be virtual.
///
/// # Errors
/// The part that is missing.
pub(crate) fn check(tree: &Path) -> Result<(), HostError> {
    let refused = |why: String| Err(unavailable(format!("{}: {why}", tree.display()), HELP));
    let text = |name: &str| fs::read_to_string(tree.join(name)).unwrap_or_default();
    let Some(version) = version(&text("Makefile")) else {
        return refused("this is no source tree of Linux: no Makefile here names a version".into());
    };
    if version < OLDEST {
        let ((major, minor), (oldest_major, oldest_minor)) = (version, OLDEST);
        return refused(format!(
            "this is Linux {major}.{minor}; the host needs {oldest_major}.{oldest_minor} or a newer one"
        ));
    }
    let options = text("arch/um/Kconfig");
    if options.is_empty() {
        return refused("this source tree has no User-Mode Linux (arch/um/Kconfig)".into());
    }
    match declares(&options, TIME_TRAVEL) {
        true => Ok(()),
        false => refused(format!(
            "its User-Mode Linux has no time travel ({TIME_TRAVEL} in arch/um/Kconfig)"
        )),
    }
}

/// The version in a kernel's Makefile.
fn version(makefile: &str) -> Option<(u32, u32)> {
    let number = |name: &str| {
        let line =
            makefile.lines().find_map(|line| line.strip_prefix(name)?.trim().strip_prefix('='));
        line?.trim().parse().ok()
    };
    Some((number("VERSION")?, number("PATCHLEVEL")?))
}

fn declares(kconfig: &str, option: &str) -> bool {
    kconfig.lines().any(|line| line.strip_prefix("config ").map(str::trim) == Some(option))
}

/// The settings of all congestion controls that a tree has.
///
/// # Errors
/// The file that declares them cannot be read.
pub(crate) fn congestion_controls(tree: &Path) -> Result<Vec<String>, HostError> {
    let file = tree.join("net/ipv4/Kconfig");
    let text = fs::read_to_string(&file).map_err(doing("reading", &file))?;
    let names = text.lines().filter_map(|line| line.strip_prefix("config ").map(str::trim));
    Ok(names.filter(|name| name.starts_with("TCP_CONG_")).map(str::to_owned).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_makefile_names_its_version() {
        assert_eq!(version("VERSION = 6\nPATCHLEVEL = 12\nSUBLEVEL = 1\n"), Some((6, 12)));
        assert_eq!(version("VERSION = 6\n"), None);
        assert_eq!(version("all:\n\tcc\n"), None);
    }
}
