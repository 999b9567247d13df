//! The table `linux`: settings of the kernel on the host of that name.

use crate::error::{Fault, On, nearest};
use crate::section::Section;
use crate::units::clip;
use knee_model::sysctl::{SYSCTL_NAME_BYTES, SYSCTL_VALUE_BYTES, SYSCTLS, Sysctl};
use toml_edit::{Item, Value};

/// The part of a sysctl's name that may be left out.
const PREFIX: &str = "net.ipv4.";

/// The sysctls of the table `linux`, in the order in which they are set.
pub(super) fn sysctls(section: &Section) -> Result<Vec<Sysctl>, Fault> {
    section.only(None)?;
    let tables =
        [("sysctl", [true, true]), ("sysctl_start", [true, false]), ("sysctl_end", [false, true])];
    let mut all = Vec::new();
    for (key, ends) in tables {
        let Some(table) = section.section(key)? else { continue };
        for (key, item) in table.table.iter() {
            let value = value(&table, key, item)?;
            all.push(Sysctl { name: name(&table, key)?, value, ends });
        }
    }
    Ok(all)
}

/// The name of a sysctl without its prefix. A name in full may be one of a kernel of the user's own.
fn name(table: &Section, key: &str) -> Result<String, Fault> {
    let own = key.strip_prefix(PREFIX);
    let is_plain = |name: &str| {
        (1..=SYSCTL_NAME_BYTES).contains(&name.len())
            && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
    };
    let known = match own {
        Some(name) => is_plain(name),
        None => SYSCTLS.contains(&key),
    };
    if known {
        return Ok(own.unwrap_or(key).to_owned());
    }
    let remedy = match nearest(key, &SYSCTLS) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!(
            "write a sysctl of TCP, such as tcp_reordering; `\"{PREFIX}NAME\"` names any other one of {PREFIX}*"
        ),
    };
    Err(Fault { on: On::Key, ..table.fault(key, ": Linux has no such sysctl of TCP", remedy) })
}

/// The value of a sysctl as text.
fn value(table: &Section, key: &str, item: &Item) -> Result<String, Fault> {
    let integer = |value: &Value| value.as_integer().map(|integer| integer.to_string());
    let text = match item.as_value() {
        Some(Value::String(text)) => Some(text.value().clone()),
        Some(Value::Array(list)) => {
            let integers: Option<Vec<_>> = list.iter().map(integer).collect();
            integers.map(|integers| integers.join(" "))
        }
        Some(value) => integer(value),
        None => None,
    };
    let fits = |text: &String| {
        (1..=SYSCTL_VALUE_BYTES).contains(&text.len())
            && text.bytes().all(|b| (32..127).contains(&b))
    };
    text.filter(fits).ok_or_else(|| {
        let what = format!(" = {} is no value of a sysctl", clip(item.to_string().trim()));
        let remedy =
            "write an integer, a list of integers such as [4096, 131072, 6291456], or a text";
        table.fault(key, &what, remedy)
    })
}
