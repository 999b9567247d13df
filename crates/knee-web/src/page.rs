//! The page itself, as `scripts/build-web.sh` made it, for programs that serve it.

use include_dir::{Dir, include_dir};

static PAGE: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/page");

/// The content of the page's file `name`, such as `index.html`; none if there is no such file, or if this
/// program was built before the page.
pub fn page(name: &str) -> Option<&'static [u8]> {
    PAGE.get_file(name).filter(|_| !name.starts_with('.')).map(|file| file.contents())
}
