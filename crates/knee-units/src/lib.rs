//! Times, rates, sizes and packet counts as people write them: `"40ms"`, `"10mbit"`, `"100kB"`,
//! `"84p"`.
//!
//! A number is decimal digits with an optional fraction; the unit is always written. Values are
//! exact integers (nanoseconds, bit/s, bytes, packets): a finer or larger value is an error.
//! [`Quantity::show`] writes text that parses back to the same value.
//!
//! ```
//! use knee_units::{RATE, TIME};
//!
//! assert_eq!(TIME.parse("40ms")?, 40_000_000); // ns
//! assert_eq!(RATE.parse("10mbit")?, 10_000_000); // bit/s
//! assert_eq!(RATE.show(10_000_000), "10mbit");
//!
//! let error = TIME.parse("40").unwrap_err();
//! assert_eq!(error.to_string(), "`40` has no unit");
//! # Ok::<(), knee_units::UnitError>(())
//! ```

use thiserror::Error;

/// Nanoseconds in a second.
pub const NS_PER_S: u64 = 1_000_000_000;
/// Nanoseconds in a millisecond.
pub const NS_PER_MS: u64 = 1_000_000;
/// Nanoseconds in a microsecond.
pub const NS_PER_US: u64 = 1_000;

/// Converts nanoseconds to seconds.
#[inline]
pub fn seconds(ns: u64) -> f64 {
    ns as f64 / NS_PER_S as f64
}

/// Converts nanoseconds to milliseconds.
#[inline]
pub fn milliseconds(ns: u64) -> f64 {
    ns as f64 / NS_PER_MS as f64
}

/// The reason why a quantity is refused.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{what}")]
pub struct UnitError {
    /// Description of the error.
    pub what: String,
    /// A correct way to write it.
    pub remedy: String,
    /// True if the value is a good one that 64 bits (of packets, 32) cannot hold.
    pub is_too_large: bool,
}

impl UnitError {
    fn new(what: String, remedy: String) -> Self {
        Self { what, remedy, is_too_large: false }
    }
}

/// A kind of quantity.
pub struct Quantity {
    /// "a time".
    pub article_name: &'static str,
    /// Units and their size in the finest one, which comes first.
    units: &'static [(&'static str, u64)],
    /// Units to propose for a number without one.
    usual: &'static [&'static str],
    /// Units to show values in, smallest first.
    shown: &'static [&'static str],
    /// Most decimals to show.
    decimals: u32,
    /// Text for 0.
    zero: &'static str,
    /// A typical value.
    pub example: &'static str,
}

/// Times, in nanoseconds; units ns, us, ms, s, min.
pub static TIME: Quantity = Quantity {
    article_name: "a time",
    units: &[
        ("ns", 1),
        ("us", NS_PER_US),
        ("ms", NS_PER_MS),
        ("s", NS_PER_S),
        ("min", 60 * NS_PER_S),
    ],
    usual: &["ms", "s"],
    shown: &["ns", "us", "ms", "s"],
    decimals: 3,
    zero: "0ms",
    example: "40ms",
};

/// Rates, in bit/s; decimal units bit, kbit, mbit, gbit.
pub static RATE: Quantity = Quantity {
    article_name: "a rate",
    units: &[("bit", 1), ("kbit", 1_000), ("mbit", 1_000_000), ("gbit", 1_000_000_000)],
    usual: &["mbit"],
    shown: &["bit", "kbit", "mbit", "gbit"],
    decimals: 3,
    zero: "0bit",
    example: "10mbit",
};

/// Sizes, in bytes; units B, kB, MB, GB (decimal), KiB, MiB, GiB (binary).
pub static SIZE: Quantity = Quantity {
    article_name: "a size",
    units: &[
        ("B", 1),
        ("kB", 1_000),
        ("MB", 1_000_000),
        ("GB", 1_000_000_000),
        ("KiB", 1 << 10),
        ("MiB", 1 << 20),
        ("GiB", 1 << 30),
    ],
    usual: &["B"],
    shown: &["B", "kB", "MB", "GB"],
    decimals: 0,
    zero: "0B",
    example: "1500B",
};

/// Numbers of packets; [`parse_packets`] reads those of 32 bits.
pub static PACKETS: Quantity = Quantity {
    article_name: "a number of packets",
    units: &[("p", 1)],
    usual: &["p"],
    shown: &["p"],
    decimals: 0,
    zero: "0p",
    example: "84p",
};

/// Packets of `"84p"`.
///
/// # Errors
/// No number, no or another unit, a fraction of a packet, more than 32 bits hold.
pub fn parse_packets(text: &str) -> Result<u32, UnitError> {
    u32::try_from(PACKETS.parse(text)?).map_err(|_| too_large(text, &PACKETS, u32::MAX.into()))
}

/// Parts per million of `"0.25"`.
///
/// # Errors
/// No number, finer than 1e-6, more than 64 bits hold.
pub fn parse_ppm(text: &str) -> Result<u64, UnitError> {
    let refuse = |what: &str| {
        let remedy = "write a number with at most six decimals, such as 0.25";
        UnitError::new(format!("`{}` {what}", clip(text)), remedy.to_owned())
    };
    scaled(text, 1_000_000).map_err(|e| match e {
        Inexact::NotANumber => refuse("is not a number"),
        Inexact::TooFine => refuse("is finer than one part per million"),
        Inexact::TooLarge => refuse("is too large"),
    })
}

/// Hexadecimal digits of bytes.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Untrusted text for a message: one line, at most 40 characters.
pub fn clip(text: &str) -> String {
    let mut clipped = String::new();
    for c in text.chars().take(40) {
        if c.is_ascii_graphic() || c == ' ' {
            clipped.push(c);
        } else {
            clipped.extend(c.escape_debug());
        }
    }
    if text.chars().nth(40).is_some() {
        clipped.push('…');
    }
    clipped
}

impl Quantity {
    /// The value in its finest unit.
    ///
    /// # Errors
    /// No number, no or another unit, a fraction of the finest unit, more than 64 bits hold.
    pub fn parse(&self, text: &str) -> Result<u64, UnitError> {
        let trimmed = text.trim();
        let end = trimmed.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(trimmed.len());
        let (number, unit) = (&trimmed[..end], trimmed[end..].trim_start());
        let given = clip(trimmed);
        let list = || self.units.iter().map(|u| u.0).collect::<Vec<_>>().join(", ");
        let refuse = UnitError::new;
        if number.is_empty() && trimmed.starts_with('-') {
            let remedy = format!("write 0 or more, such as \"{}\"", self.example);
            return Err(refuse(format!("`{given}` is negative"), remedy));
        }
        if number.is_empty() {
            return Err(refuse(
                format!("`{given}` is not {}", self.article_name),
                format!("write a number and a unit ({}), such as \"{}\"", list(), self.example),
            ));
        }
        if unit.is_empty() {
            let proposals: Vec<_> = self
                .usual
                .iter()
                .map(|unit| format!("{number}{unit}"))
                .filter(|proposal| self.parse(proposal).is_ok())
                .map(|proposal| format!("\"{}\"", clip(&proposal)))
                .collect();
            let proposal = match proposals.is_empty() {
                true => format!("a number and a unit, such as \"{}\"", self.example),
                false => proposals.join(" or "),
            };
            let remedy = format!("write {proposal} (units: {})", list());
            return Err(refuse(format!("`{given}` has no unit"), remedy));
        }
        let Some(&(_, size)) = self.units.iter().find(|u| u.0 == unit) else {
            let known = self.units.iter().find(|u| u.0.eq_ignore_ascii_case(unit));
            let proposal =
                known.map_or_else(String::new, |u| format!("write \"{}{}\"; ", clip(number), u.0));
            return Err(refuse(
                format!("`{given}`: `{}` is not a unit of {}", clip(unit), self.article_name),
                format!("{proposal}units are {}, as in \"{}\"", list(), self.example),
            ));
        };
        scaled(number, size).map_err(|e| match e {
            Inexact::NotANumber => refuse(
                format!("`{given}` is not {}", self.article_name),
                format!("write digits with at most one point, such as \"{}\"", self.example),
            ),
            Inexact::TooFine => refuse(
                format!("`{given}` is not a whole number of {}", self.units[0].0),
                format!("1{} is the finest step", self.units[0].0),
            ),
            Inexact::TooLarge => too_large(trimmed, self, u64::MAX),
        })
    }

    /// A regular expression of such texts, without anchors; if `above_zero`, of those that are not 0.
    pub fn pattern(&self, above_zero: bool) -> String {
        let number = match above_zero {
            true => r"0*[1-9][0-9]*(\.[0-9]+)?|0+\.0*[1-9][0-9]*",
            false => r"[0-9]+(\.[0-9]+)?",
        };
        let units: Vec<_> = self.units.iter().map(|unit| unit.0).collect();
        format!(r"({number})\s*({})", units.join("|"))
    }

    fn largest_in_words(&self, most: u64) -> String {
        let largest = self.units.iter().rfind(|u| self.shown.contains(&u.0));
        let (unit, size) = largest.unwrap_or(&self.units[0]);
        format!("write at most \"{}{unit}\"", most / size)
    }

    /// In the largest unit that needs few decimals: always exact.
    pub fn show(&self, value: u64) -> String {
        if value == 0 {
            return self.zero.to_owned();
        }
        let units = self.shown.iter().rev();
        for (unit, size) in units.filter_map(|u| self.units.iter().find(|(name, _)| name == u)) {
            let places = self.decimals.min(size.ilog10());
            let step = size / 10u64.pow(places);
            if value >= *size && value.is_multiple_of(step) {
                let fraction = format!("{:0width$}", value % size / step, width = places as usize);
                let number = format!("{}.{fraction}", value / size);
                return format!("{}{unit}", number.trim_end_matches('0').trim_end_matches('.'));
            }
        }
        unreachable!("the finest unit shows every value")
    }
}

fn too_large(text: &str, quantity: &Quantity, most: u64) -> UnitError {
    UnitError {
        what: format!("`{}` is too large", clip(text.trim())),
        remedy: quantity.largest_in_words(most),
        is_too_large: true,
    }
}

/// The reason why a decimal number times its unit is no 64-bit integer.
enum Inexact {
    NotANumber,
    TooFine,
    TooLarge,
}

/// `number` (digits, optional fraction) times `unit`, exactly.
fn scaled(number: &str, unit: u64) -> Result<u64, Inexact> {
    let (whole, fraction) = match number.split_once('.') {
        Some((_, "")) => return Err(Inexact::NotANumber),
        Some((whole, fraction)) => (whole, fraction),
        None => (number, ""),
    };
    let is_digits = |s: &str| s.bytes().all(|b| b.is_ascii_digit());
    if whole.is_empty() || !is_digits(whole) || !is_digits(fraction) {
        return Err(Inexact::NotANumber);
    }
    let fraction = fraction.trim_end_matches('0');
    // No unit has more than 12 factors of 10; digits cut off here could not come out whole.
    let places = u32::try_from(fraction.len()).ok().filter(|n| *n <= 18).ok_or(Inexact::TooFine)?;
    let whole: u64 = whole.parse().map_err(|_| Inexact::TooLarge)?;
    let fraction = u128::from(fraction.parse::<u64>().unwrap_or(0)) * u128::from(unit);
    let one = 10u128.pow(places);
    if !fraction.is_multiple_of(one) {
        return Err(Inexact::TooFine);
    }
    let sum = u128::from(whole) * u128::from(unit) + fraction / one;
    u64::try_from(sum).map_err(|_| Inexact::TooLarge)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn values_are_exact() {
        for (text, ns) in [
            ("40ms", 40_000_000),
            ("0.5ms", 500_000),
            ("0.1s", 100_000_000),
            ("0.000000001s", 1),
            ("1.10 ms", 1_100_000),
            ("2min", 120_000_000_000),
            ("9223372036854775807ns", i64::MAX as u64),
            ("18446744073.709551615s", u64::MAX),
            ("0us", 0),
        ] {
            assert_eq!(TIME.parse(text), Ok(ns), "{text}");
        }
        assert_eq!(RATE.parse("1.544mbit"), Ok(1_544_000));
        assert_eq!(SIZE.parse("100kB"), Ok(100_000));
        assert_eq!(SIZE.parse("1.5KiB"), Ok(1536));
        assert_eq!(parse_packets("84p"), Ok(84));
        assert_eq!(parse_ppm("0.25"), Ok(250_000));
    }

    #[test]
    fn shown_as_people_write_them() {
        for (ns, text) in [
            (0, "0ms"),
            (1, "1ns"),
            (500_000, "500us"),
            (1_500_000, "1.5ms"),
            (90 * NS_PER_S, "90s"),
            (1_234_567, "1234.567us"),
        ] {
            assert_eq!(TIME.show(ns), text);
        }
        assert_eq!(RATE.show(1_544_000), "1.544mbit");
        assert_eq!(SIZE.show(1500), "1500B");
        assert_eq!(SIZE.show(100_000), "100kB");
        assert_eq!(PACKETS.show(84), "84p");
    }

    #[test]
    fn refused_with_a_remedy() {
        let said: Vec<_> = [
            TIME.parse("40").map(drop),
            TIME.parse(" ").map(drop),
            TIME.parse("soon").map(drop),
            TIME.parse("-3ms").map(drop),
            TIME.parse("40MS").map(drop),
            TIME.parse("1e3ms").map(drop),
            TIME.parse("1.2.3ms").map(drop),
            TIME.parse("5.ms").map(drop),
            TIME.parse("0.3ns").map(drop),
            TIME.parse("0.0000000000000000001s").map(drop),
            TIME.parse("18446744074s").map(drop),
            TIME.parse("99999999999999999999s").map(drop),
            RATE.parse("10mbps").map(drop),
            RATE.parse("0.5bit").map(drop),
            SIZE.parse("1500").map(drop),
            SIZE.parse("1kb").map(drop),
            parse_packets("5000000000p").map(drop),
            parse_packets("1.5p").map(drop),
            parse_ppm("0.1234567").map(drop),
            parse_ppm("x").map(drop),
        ]
        .into_iter()
        .map(|refused| {
            let e = refused.expect_err("must be refused");
            format!("{e}\n    {}", e.remedy)
        })
        .collect();
        insta::assert_snapshot!(said.join("\n"));
    }

    proptest! {
        #[test]
        fn shown_parses_back(value: u64, shift in 0u32..64) {
            let value = value >> shift;
            prop_assert_eq!(TIME.parse(&TIME.show(value)), Ok(value));
            prop_assert_eq!(RATE.parse(&RATE.show(value)), Ok(value));
            prop_assert_eq!(SIZE.parse(&SIZE.show(value)), Ok(value));
            let pkts = value as u32;
            prop_assert_eq!(parse_packets(&PACKETS.show(pkts.into())), Ok(pkts));
        }

        #[test]
        fn round_times_parse_back(value in 0u64..10_000_000, exponent in 0u32..12) {
            let value = value * 10u64.pow(exponent);
            prop_assert_eq!(TIME.parse(&TIME.show(value)), Ok(value));
        }

        #[test]
        fn never_panics(text: String, number in "[0-9.]{0,30}", unit in "[a-zA-Z]{0,4}") {
            for text in [text, format!("{number}{unit}"), format!("{number}ms")] {
                let _ = (TIME.parse(&text), RATE.parse(&text), SIZE.parse(&text));
                let _ = (parse_packets(&text), parse_ppm(&text));
            }
        }
    }
}
