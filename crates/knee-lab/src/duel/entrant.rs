//! An algorithm as it is written on a command line: `chd:qth=20ms`.

use knee_cc::{Algorithm, ParamError, Params, algorithms, find};
use knee_model::{Cc, KERNEL_PREFIX};
use knee_scenario::{nearest, units::clip};
use std::path::Path;

/// Longest name of a congestion control in Linux.
const CC_NAME_MAX: usize = 15;

/// An algorithm with its parameters.
#[derive(Clone, Debug)]
pub struct Entrant {
    /// Name in results: that of the algorithm, and the given parameters.
    pub name: String,
    /// The congestion control.
    pub cc: Cc,
    /// Parameters that were given, by name, in written units.
    given: Vec<(&'static str, String)>,
}

impl Entrant {
    /// Reads an algorithm of `knee list`, `chd`, or with parameters, `chd:qth=20ms:qmin=5ms`; or one
    /// in a C file, `./mine.c`; on the kernel also `kernel:cubic`, one of its own.
    ///
    /// # Errors
    /// In words, with the correct form.
    pub fn parse(text: &str) -> Result<Self, String> {
        let text = text.trim();
        if let Some(name) = text.strip_prefix(KERNEL_PREFIX) {
            return kernel(name);
        }
        let mut parts = text.split(':').map(str::trim);
        let word = parts.next().unwrap_or_default();
        let found = find(word, Path::new("")).map_err(|e| format!("{e}; {}", e.help()))?;
        let Some(found) = found else {
            let names: Vec<&str> = algorithms().iter().map(Algorithm::name).collect();
            let what = format!("no such algorithm: `{}`", clip(word));
            return Err(refused(&what, nearest(word, &names)));
        };
        let word = found.name();
        let mut given: Vec<(&str, &str)> = Vec::new();
        for part in parts {
            let Some((name, value)) = part.split_once('=') else {
                let what = format!("`{}` is not a parameter with a value", clip(part));
                return Err(format!("{what}; write {word}:name=value"));
            };
            given.push((name.trim(), value.trim()));
        }
        let params = Params::defaults(found).with_written(given.iter().copied());
        let params = params.map_err(|e| match e {
            ParamError::Unknown { name, .. } => {
                let table = found.params();
                let names: Vec<&str> = table.iter().map(|p| p.name).collect();
                let what = format!("{word} has no parameter `{}`", clip(&name));
                refused(&what, nearest(&name, &names))
            }
            e => e.to_string(),
        })?;
        let mut names: Vec<&'static str> = Vec::new();
        for (name, _) in &given {
            let param = Params::find(found, name).map_err(|e| e.to_string())?;
            if names.contains(&param.name) {
                return Err(format!("{} is given twice; keep one of the two", param.name));
            }
            names.push(param.name);
        }
        let shown = params.shown();
        let value = |name: &'static str| {
            shown.iter().find(|(known, _)| *known == name).map(|(_, value)| (name, value.clone()))
        };
        let given: Vec<(&'static str, String)> = names.into_iter().filter_map(value).collect();
        let suffix: String = given.iter().map(|(name, value)| format!(":{name}={value}")).collect();
        Ok(Self { name: format!("{word}{suffix}"), cc: Cc::Knee(params), given })
    }

    /// All algorithms of Knee with their defaults.
    pub fn all() -> Vec<Self> {
        let one = |found: &Algorithm| Self {
            name: found.name().to_owned(),
            cc: Cc::Knee(Params::defaults(*found)),
            given: Vec::new(),
        };
        algorithms().iter().map(one).collect()
    }

    /// The values that make flow `index` of a scenario this entrant, as after `--set`.
    pub(crate) fn sets(&self, index: usize) -> Vec<String> {
        let cc = format!("flow.{index}.cc={}", self.cc.name());
        let param = |(name, value): &(&str, String)| format!("flow.{index}.params.{name}={value}");
        [cc].into_iter().chain(self.given.iter().map(param)).collect()
    }
}

/// The error, with the name that was probably meant and the command that lists all.
fn refused(what: &str, near: Option<&str>) -> String {
    let near = near.map_or_else(String::new, |near| format!("did you mean `{near}`? "));
    format!("{what}; {near}`knee list` shows all")
}

fn kernel(name: &str) -> Result<Entrant, String> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-".contains(c);
    if !(1..=CC_NAME_MAX).contains(&name.len()) || !name.chars().all(is_plain) {
        return Err(format!(
            "`{}` names no algorithm of the kernel; write one of tcp_available_congestion_control, as \
             in {KERNEL_PREFIX}cubic",
            clip(name)
        ));
    }
    let name = name.to_owned();
    let cc = Cc::Kernel(name);
    Ok(Entrant { name: cc.name(), cc, given: Vec::new() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use knee_cc::algorithm;

    #[test]
    fn parameters_are_shown_as_people_write_them() {
        let name = |text| Entrant::parse(text).unwrap().name;
        assert_eq!(name("chd"), "chd");
        assert_eq!(name(" chd: qth = 20000us "), "chd:qth=20ms");
        assert_eq!(name("chd:qth=30ms:qmin=5ms"), "chd:qth=30ms:qmin=5ms");
        assert_eq!(name("kernel:cubic"), "kernel:cubic");
        let chd = Entrant::parse("chd:qth=20ms").unwrap();
        assert_eq!(chd.sets(1), ["flow.1.cc=chd", "flow.1.params.qth=20ms"]);
        // FreeBSD's name is another name of the same parameter.
        let alias = |found: &Algorithm| found.params().iter().find_map(|p| Some((p.alias?, *p)));
        let (alias, param) = algorithm("chd").and_then(|a| alias(&a)).unwrap();
        let text = format!("chd:{alias}={}", param.show(param.default));
        assert_eq!(Entrant::parse(&text).unwrap().given[0].0, param.name);
    }

    #[test]
    fn all_are_those_of_the_registry() {
        let names: Vec<String> = Entrant::all().into_iter().map(|e| e.name).collect();
        assert_eq!(names, algorithms().iter().map(Algorithm::name).collect::<Vec<_>>());
        for name in names {
            assert!(Entrant::parse(&name).is_ok());
        }
    }

    #[test]
    fn refused_with_a_remedy() {
        let refused = |text: &str, words: &[&str]| {
            let said = Entrant::parse(text).expect_err(text);
            for word in words {
                assert!(said.contains(word), "{text}: {said}");
            }
        };
        refused("", &["no such algorithm: ``; `knee list`"]);
        refused("chdd", &["no such algorithm: `chdd`", "did you mean `chd`?"]);
        refused("chd:qht=20ms", &["chd has no parameter `qht`", "did you mean `qth`?"]);
        refused("chd:qth=20", &["qth", "no unit", "20ms"]);
        refused("chd:qth=9000s", &["qth", "out of range"]);
        refused("chd:20ms", &["`20ms` is not a parameter", "chd:name=value"]);
        refused("chd:qth=20ms:qth=30ms", &["given twice"]);
        refused("chd:qth=1ms", &["must be less than"]);
        refused("kernel:", &["names no algorithm of the kernel", "kernel:cubic"]);
        refused("kernel:cubic:x=1", &["names no algorithm of the kernel"]);
    }
}
