//! Kernels for the guest: those that Debian's package lists offer, those in the cache, images of the
//! user's own.

use crate::{
    apt::{Lists, command},
    places::{cache, paths_in},
};
use knee_model::{
    HostError,
    failure::{broken, doing, unavailable},
};
use serde::{Deserialize, Serialize};
use std::{
    cmp::Reverse,
    ffi::OsStr,
    fmt, fs,
    io::{self, ErrorKind, Read},
    path::{Path, PathBuf},
    process::Command,
    str::FromStr,
};

/// Debian's kernels for virtual machines: the same sources as its others, without drivers.
const PREFIX: &str = "linux-image-";
const FLAVOUR: &str = "-cloud-amd64";
/// From Linux 7 on a package of an image depends on these.
const PARTS: [&str; 2] = ["linux-binary-", "linux-modules-"];
/// A file in a folder of the cache, next to the package's files.
const PACKAGE_FILE: &str = "package.json";
const UNPACKED: &str = "unpacked";

/// The kernel that a guest is to run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KernelChoice {
    /// `debian:6.12`: a series, of which the newest package in the cache is taken.
    Debian(Series),
    /// `IMAGE` or `IMAGE,MODULES`: a bzImage, and the folder of its modules (if none is named,
    /// `/lib/modules/RELEASE`).
    Image {
        /// The bzImage.
        image: PathBuf,
        /// Folder with its modules.
        modules: Option<PathBuf>,
    },
}

impl FromStr for KernelChoice {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Some(series) = text.strip_prefix("debian:") {
            return series.parse().map(Self::Debian);
        }
        if !text.contains('/') && !Path::new(text).exists() {
            return Err(format!(
                "`{text}` is no kernel: write debian:6.12 (`knee vm kernels` lists what there is), \
                 or the path of a bzImage"
            ));
        }
        let (image, modules) = match text.split_once(',') {
            Some((image, modules)) => (image, Some(modules.into())),
            None => (text, None),
        };
        Ok(Self::Image { image: image.into(), modules })
    }
}

impl fmt::Display for KernelChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Debian(series) => write!(f, "debian:{series}"),
            Self::Image { image, modules: None } => write!(f, "{}", image.display()),
            Self::Image { image, modules: Some(modules) } => {
                write!(f, "{},{}", image.display(), modules.display())
            }
        }
    }
}

/// A series of kernels, such as 6.12.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Series {
    major: u32,
    minor: u32,
}

impl FromStr for Series {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let numbers = text.split_once('.');
        let parsed = numbers.and_then(|(a, b)| Some((a.parse().ok()?, b.parse().ok()?)));
        parsed
            .map(|(major, minor)| Self { major, minor })
            .ok_or_else(|| format!("`{text}` is no series of kernels: write debian:6.12"))
    }
}

impl fmt::Display for Series {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

/// A package of a Debian kernel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Package {
    /// Such as `linux-image-6.12.117+deb12-cloud-amd64`.
    pub name: String,
    /// Such as `6.12.117-1~deb12u1`. Empty of one that is only offered.
    pub version: String,
    /// Debian's suite, if it is not one that the system's own lists have: `sid`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub suite: Option<String>,
}

impl Package {
    /// The series of an image's package; none of others (meta-packages, other flavours).
    fn series(&self) -> Option<Series> {
        let release = self.name.strip_prefix(PREFIX)?.strip_suffix(FLAVOUR)?;
        match numbers(release)[..] {
            [major, minor, _, ..] => {
                Some(Series { major: major.try_into().ok()?, minor: minor.try_into().ok()? })
            }
            _ => None,
        }
    }

    /// Orders packages of a series by age.
    fn age(&self) -> (Vec<u64>, Vec<u64>) {
        (numbers(&self.name), numbers(&self.version))
    }
}

/// The numbers in a name: 6.12.117+deb12 gives 6, 12, 117, 12.
fn numbers(text: &str) -> Vec<u64> {
    let digits = text.split(|c: char| !c.is_ascii_digit()).filter(|d| !d.is_empty());
    digits.map(|d| d.parse().unwrap_or(u64::MAX)).collect()
}

/// A kernel that is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kernel {
    /// Its name on the command line.
    pub choice: KernelChoice,
    /// Its origin; none of an image of the user's own.
    pub package: Option<Package>,
    /// The kernel's own name of its release: `6.12.117+deb12-cloud-amd64`.
    pub release: String,
    /// The bzImage.
    pub image: PathBuf,
    /// Folder with its modules.
    pub modules: PathBuf,
}

/// A series in a list of kernels.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    /// The series.
    pub series: Series,
    /// Newest package that the package lists offer.
    pub offered: Option<Package>,
    /// The kernel that a run takes.
    pub cached: Option<Kernel>,
}

/// All series that Debian's package lists offer or that are in the cache, newest first.
///
/// # Errors
/// The cache cannot be read. Without apt nothing is offered.
pub fn list() -> Result<Vec<Listed>, HostError> {
    let cached = cached()?;
    let mut listed: Vec<Listed> = Vec::new();
    for package in Lists::of_system().offered() {
        let Some(series) = package.series() else { continue };
        if !listed.iter().any(|l| l.series == series) {
            listed.push(Listed { series, offered: Some(package), cached: None });
        }
    }
    for kernel in cached {
        let KernelChoice::Debian(series) = kernel.choice else { continue };
        let found = listed.iter().position(|l| l.series == series).unwrap_or_else(|| {
            listed.push(Listed { series, offered: None, cached: None });
            listed.len() - 1
        });
        // The newest comes first.
        listed[found].cached.get_or_insert(kernel);
    }
    listed.sort_by_key(|l| Reverse(l.series));
    Ok(listed)
}

/// The kernel for `choice`; without one, the newest in the cache. Kernels of the system's own suites come
/// before those of sid.
///
/// # Errors
/// It is not in the cache, or no bzImage for x86-64.
pub(crate) fn find(choice: Option<&KernelChoice>) -> Result<Kernel, HostError> {
    let wanted = match choice {
        Some(KernelChoice::Image { image, modules }) => {
            return Kernel::of_image(image, modules.as_deref());
        }
        Some(KernelChoice::Debian(series)) => Some(*series),
        None => None,
    };
    let mut cached = cached()?.into_iter();
    let found = match wanted {
        Some(series) => cached.find(|kernel| kernel.choice == KernelChoice::Debian(series)),
        None => cached.next(),
    };
    found.ok_or_else(|| {
        let newest = || Lists::of_system().offered().iter().find_map(Package::series);
        let name =
            wanted.or_else(newest).map_or("debian:6.12".to_owned(), |s| format!("debian:{s}"));
        let why = format!("there is no kernel {name} in the cache for `--host vm`");
        let help = format!(
            "`knee vm fetch {name}` gets it through apt, without installing it; `knee vm kernels` \
             lists others; elsewhere than on Debian give a bzImage with --kernel"
        );
        unavailable(why, help)
    })
}

impl Kernel {
    fn of_image(image: &Path, modules: Option<&Path>) -> Result<Self, HostError> {
        let release = release(image)?;
        let beside = PathBuf::from("/lib/modules").join(&release);
        Ok(Self {
            choice: KernelChoice::Image {
                image: image.to_owned(),
                modules: modules.map(Path::to_owned),
            },
            package: None,
            modules: modules.map_or(beside, Path::to_owned),
            release,
            image: image.to_owned(),
        })
    }

    /// The kernel in a folder of the cache.
    fn of_folder(folder: &Path) -> Result<Self, HostError> {
        let read = |name: &str| fs::read(folder.join(name)).map_err(doing("reading", folder));
        let package: Package = serde_json::from_slice(&read(PACKAGE_FILE)?)
            .map_err(|e| broken(format!("{}: {e}; remove the folder", folder.display())))?;
        let unpacked = folder.join(UNPACKED);
        let series = package.series().ok_or_else(|| {
            broken(format!("{}: not a kernel's package; remove the folder", folder.display()))
        })?;
        let (image, modules) = parts(&unpacked)?;
        let release = release(&image)?;
        let choice = KernelChoice::Debian(series);
        Ok(Self { choice, package: Some(package), release, image, modules })
    }

    /// Returns a description of one line.
    pub fn describe(&self) -> String {
        match &self.package {
            Some(Package { name, version, .. }) => format!("{name} {version}"),
            None => format!("{} ({})", self.image.display(), self.release),
        }
    }
}

/// Image and modules of an unpacked package.
fn parts(unpacked: &Path) -> Result<(PathBuf, PathBuf), HostError> {
    let lacks = |what: &str| {
        broken(format!("{} has no {what}: fetch the kernel again", unpacked.display()))
    };
    let modules = ["usr/lib/modules", "lib/modules"].iter().flat_map(|at| {
        fs::read_dir(unpacked.join(at)).into_iter().flatten().flatten().map(|entry| entry.path())
    });
    let modules: Vec<PathBuf> = modules.collect();
    let beside = modules.iter().map(|folder| folder.join("vmlinuz")).find(|file| file.exists());
    let image = beside.or_else(|| {
        let boot = fs::read_dir(unpacked.join("boot")).into_iter().flatten().flatten();
        boot.map(|e| e.path()).find(|path| {
            path.file_name().and_then(OsStr::to_str).is_some_and(|n| n.starts_with("vmlinuz-"))
        })
    });
    let with_modules = modules.iter().find(|folder| folder.join("kernel").exists());
    Ok((
        image.ok_or_else(|| lacks("image"))?,
        with_modules.ok_or_else(|| lacks("modules"))?.clone(),
    ))
}

/// Offsets in the image of a kernel for x86 (its boot protocol): magic, position of the release.
const MAGIC_AT: usize = 0x202;
const RELEASE_AT: usize = 0x20e;
/// The first of these flags tells a kernel of 64 bits.
const FLAGS_AT: usize = 0x236;
/// The release is within so much of the image's beginning: its position has 16 bits.
const HEAD_BYTES: u64 = 1 << 17;

/// The release that an image calls itself.
fn release(image: &Path) -> Result<String, HostError> {
    let mut bytes = Vec::new();
    let head = fs::File::open(image).and_then(|file| file.take(HEAD_BYTES).read_to_end(&mut bytes));
    head.map_err(|e| {
        unavailable(format!("cannot read the kernel {}: {e}", image.display()), "name a bzImage")
    })?;
    release_of(&bytes).ok_or_else(|| {
        let why = format!("{} is not a Linux kernel (bzImage) for x86-64", image.display());
        unavailable(why, "the guest is an x86-64 machine: give a kernel for that")
    })
}

fn release_of(image: &[u8]) -> Option<String> {
    if image.get(MAGIC_AT..MAGIC_AT + 4)? != b"HdrS" {
        return None;
    }
    if image.get(FLAGS_AT)? & 1 == 0 {
        return None;
    }
    let at = u16::from_le_bytes(image.get(RELEASE_AT..RELEASE_AT + 2)?.try_into().ok()?);
    let text = image.get(usize::from(at) + 0x200..)?;
    let release = text.split(|b| *b == b' ' || *b == 0).next()?;
    Some(String::from_utf8_lossy(release).into_owned()).filter(|release| !release.is_empty())
}

fn kernels() -> Result<PathBuf, HostError> {
    Ok(cache()?.join("kernels"))
}

/// Returns the kernels in the cache, newest first, with kernels of sid at the end.
fn cached() -> Result<Vec<Kernel>, HostError> {
    let paths = paths_in(&kernels()?)?.into_iter();
    let whole = paths.filter(|path| path.join(PACKAGE_FILE).exists());
    let mut kernels = whole.map(|path| Kernel::of_folder(&path)).collect::<Result<Vec<_>, _>>()?;
    kernels.sort_by_key(|kernel| {
        Reverse(kernel.package.as_ref().map(|package| (package.suite.is_none(), package.age())))
    });
    Ok(kernels)
}

impl Lists {
    /// The kernels on offer, newest first; none without apt.
    fn offered(&self) -> Vec<Package> {
        let suite = self.suite.map(str::to_owned);
        let mut packages: Vec<Package> = self
            .names(PREFIX)
            .into_iter()
            .map(|name| Package { name, version: String::new(), suite: suite.clone() })
            .filter(|package| package.series().is_some())
            .collect();
        packages.sort_by_key(|package| Reverse(package.age()));
        packages
    }

    /// Downloads a package of a kernel, with its parts, into `folder`, and unpacks it.
    fn get(&self, mut package: Package, folder: &Path) -> Result<Kernel, HostError> {
        let new = tempfile::Builder::new().prefix(".new-").tempdir_in(folder);
        let new = new.map_err(doing("creating a folder in", folder))?;
        let unpacked = new.path().join(UNPACKED);
        let packages = new.path().join("packages");
        fs::create_dir(&packages).map_err(doing("creating", &packages))?;
        let depends = command(self.command("apt-cache").args(["depends", &package.name]))?;
        let parts = depends.lines().filter_map(|line| line.trim().strip_prefix("Depends: "));
        let parts = parts.filter(|name| PARTS.iter().any(|prefix| name.starts_with(prefix)));
        let mut apt = self.command("apt-get");
        apt.current_dir(&packages).args(["download", "-qq", &package.name]).args(parts);
        command(&mut apt)?;
        for file in fs::read_dir(&packages).map_err(doing("reading", &packages))?.flatten() {
            let file = file.path();
            let mut fields = Command::new("dpkg-deb");
            let fields = command(fields.arg("-f").arg(&file).args(["Package", "Version"]))?;
            let field =
                |key: &str| fields.lines().find_map(|line| line.strip_prefix(key)).map(str::trim);
            if field("Package:") == Some(&package.name) {
                package.version = field("Version:").unwrap_or_default().to_owned();
            }
            command(Command::new("dpkg-deb").arg("-x").arg(&file).arg(&unpacked))?;
        }
        if package.version.is_empty() {
            return Err(broken(format!("apt-get downloaded no {}", package.name)));
        }
        fs::remove_dir_all(&packages).map_err(doing("removing", &packages))?;
        let json = serde_json::to_vec_pretty(&package).map_err(broken)?;
        fs::write(new.path().join(PACKAGE_FILE), json).map_err(doing("writing in", new.path()))?;
        Kernel::of_folder(new.path())?;
        let place = folder.join(format!("{}_{}", package.name, package.version));
        // It has its name only when it is whole.
        match fs::rename(new.path(), &place) {
            Ok(()) => drop(new.keep()),
            // Somebody was faster, or it was there before.
            Err(_) if place.join(PACKAGE_FILE).exists() => {}
            Err(e) => return Err(doing("naming", &place)(e)),
        }
        Kernel::of_folder(&place)
    }
}

/// Gets the newest package of a series through apt, which checks it, and unpacks it into the cache.
/// Nothing is installed. A series that the system's package lists do not offer is looked for in sid.
///
/// # Errors
/// Neither has it, nor the cache; apt or dpkg fails; no room.
pub fn fetch(series: Series) -> Result<Kernel, HostError> {
    let folder = kernels()?;
    fs::create_dir_all(&folder).map_err(doing("creating", &folder))?;
    let wanted = |package: &Package| package.series() == Some(series);
    let system = Lists::of_system();
    if let Some(package) = system.offered().into_iter().find(wanted) {
        return system.get(package, &folder);
    }
    fetch_from_sid(series, &folder).or_else(|error| {
        // A kernel from an earlier fetch serves without apt, and once sid has a newer one.
        let fetched = |kernel: &Kernel| kernel.choice == KernelChoice::Debian(series);
        cached()?.into_iter().find(fetched).ok_or(error)
    })
}

fn fetch_from_sid(series: Series, folder: &Path) -> Result<Kernel, HostError> {
    let place = tempfile::Builder::new().prefix(".lists-").tempdir_in(folder);
    let place = place.map_err(doing("creating a folder in", folder))?;
    let none = format!("Debian's package lists offer no kernel of series {series}");
    let help = "`knee vm kernels` lists the series that this system's lists offer, and `apt-get update` renews \
                them; without apt, give a kernel's image and modules with --kernel IMAGE,MODULES";
    let sid = Lists::of_sid(place.path())
        .map_err(|error| unavailable(format!("{none}, and sid is not available: {error}"), help))?;
    let offered = sid.offered();
    let series_of_sid: Vec<String> =
        offered.iter().filter_map(Package::series).map(|series| series.to_string()).collect();
    match offered.into_iter().find(|package| package.series() == Some(series)) {
        Some(package) => sid.get(package, folder),
        None => {
            let has = series_of_sid.join(", ");
            Err(unavailable(format!("{none}; sid offers {has}"), help))
        }
    }
}

/// Name of a module's file without its endings.
pub(crate) fn module_name(file: &Path) -> &str {
    let name = file.file_name().and_then(OsStr::to_str).unwrap_or_default();
    name.split('.').next().unwrap_or_default()
}

/// All files of modules below `folder`, in the order of their names.
pub(crate) fn module_files(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder)? {
            let (path, kind) = entry.and_then(|e| Ok((e.path(), e.file_type()?)))?;
            if kind.is_dir() {
                folders.push(path);
            } else if path.to_string_lossy().contains(".ko") {
                files.push(path);
            }
        }
    }
    files.sort();
    Ok(files)
}

/// A module's bytes as the kernel takes them.
pub(crate) fn uncompressed(file: &Path) -> io::Result<Vec<u8>> {
    match file.extension().and_then(OsStr::to_str) {
        Some("ko") => fs::read(file),
        Some("xz") => {
            let mut bytes = Vec::new();
            let mut reader = lzma_rust2::XzReader::new(fs::File::open(file)?, true);
            io::Read::read_to_end(&mut reader, &mut bytes)?;
            Ok(bytes)
        }
        _ => Err(io::Error::new(
            ErrorKind::Unsupported,
            format!("{}: neither plain nor xz: unpack it to a .ko next to it", file.display()),
        )),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)] // tests

    use super::*;

    fn package(name: &str) -> Package {
        Package { name: name.to_owned(), version: String::new(), suite: None }
    }

    #[test]
    fn names_tell_the_series() {
        let series = |name| package(name).series().map(|s| s.to_string());
        assert_eq!(series("linux-image-6.12.117+deb12-cloud-amd64").as_deref(), Some("6.12"));
        assert_eq!(series("linux-image-6.1.0-56-cloud-amd64").as_deref(), Some("6.1"));
        for other in [
            "linux-image-6.12-cloud-amd64",
            "linux-image-cloud-amd64",
            "linux-image-6.12.117+deb12-amd64",
            "linux-image-6.1.0-56-cloud-amd64-unsigned",
            "linux-headers-6.1.0-56-cloud-amd64",
        ] {
            assert_eq!(series(other), None, "{other}");
        }
    }

    #[test]
    fn newer_packages_come_first() {
        let mut packages = [
            "linux-image-6.1.0-9-cloud-amd64",
            "linux-image-6.12.100+deb12-cloud-amd64",
            "linux-image-6.1.0-56-cloud-amd64",
            "linux-image-6.12.99+deb12-cloud-amd64",
        ]
        .map(package);
        packages.sort_by_key(|p| Reverse(p.age()));
        let order = packages.map(|p| p.name);
        assert_eq!(
            order,
            [
                "linux-image-6.12.100+deb12-cloud-amd64",
                "linux-image-6.12.99+deb12-cloud-amd64",
                "linux-image-6.1.0-56-cloud-amd64",
                "linux-image-6.1.0-9-cloud-amd64",
            ]
        );
        assert!("6.12".parse::<Series>().unwrap() > "6.1".parse().unwrap());
    }

    #[test]
    fn choices_are_read() {
        let debian = KernelChoice::Debian(Series { major: 6, minor: 12 });
        assert_eq!("debian:6.12".parse(), Ok(debian.clone()));
        assert_eq!(debian.to_string(), "debian:6.12");
        let image = KernelChoice::Image { image: "./bzImage".into(), modules: None };
        assert_eq!("./bzImage".parse(), Ok(image));
        let image = KernelChoice::Image { image: "/b".into(), modules: Some("/m".into()) };
        assert_eq!("/b,/m".parse(), Ok(image.clone()));
        assert_eq!(image.to_string(), "/b,/m");
        for wrong in ["debian:", "debian:6", "debian:six", "6.12"] {
            assert!(wrong.parse::<KernelChoice>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn an_image_says_its_release() {
        let mut image = vec![0; 0x400];
        image[MAGIC_AT..MAGIC_AT + 4].copy_from_slice(b"HdrS");
        image[FLAGS_AT] = 1;
        image[RELEASE_AT..RELEASE_AT + 2].copy_from_slice(&0x100_u16.to_le_bytes());
        image[0x300..0x30c].copy_from_slice(b"6.1.0-9 (me)");
        assert_eq!(release_of(&image).as_deref(), Some("6.1.0-9"));
        image[FLAGS_AT] = 2;
        assert_eq!(release_of(&image), None, "32 bits");
        image[FLAGS_AT] = 1;
        image[MAGIC_AT] = 0;
        assert_eq!(release_of(&image), None);
        assert_eq!(release_of(b"short"), None);
    }
}
