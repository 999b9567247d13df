//! Quantities as people write them, and limits of queues, which are packets or bytes.

use knee_model::QueueLimit;
pub use knee_units::*;

/// Suffix of a limit in bytes beyond which one packet more fits.
const AND_ONE: &str = "+1p";

/// Limit of a queue, in packets (`"84p"`) or bytes (`"100kB"`; `"100kB+1p"` as in dummynet).
///
/// # Errors
/// The errors of [`parse_packets`] and [`Quantity::parse`].
pub fn parse_queue(text: &str) -> Result<QueueLimit, UnitError> {
    if let Some(bytes) = text.trim().strip_suffix(AND_ONE) {
        return SIZE.parse(bytes).map(QueueLimit::BytesAndOne);
    }
    let number_end = |c: char| !c.is_ascii_digit() && c != '.';
    match text.trim().find(number_end).map(|end| text.trim()[end..].trim_start()) {
        Some("p") => parse_packets(text).map(QueueLimit::Packets),
        _ => SIZE.parse(text).map(QueueLimit::Bytes).map_err(|e| {
            let remedy = format!("packets are written \"84p\"; for bytes, {}", e.remedy);
            UnitError { remedy, ..e }
        }),
    }
}

/// A limit as [`parse_queue`] reads it.
pub fn show_queue(limit: QueueLimit) -> String {
    match limit {
        QueueLimit::Packets(pkts) => PACKETS.show(pkts.into()),
        QueueLimit::Bytes(bytes) => SIZE.show(bytes),
        QueueLimit::BytesAndOne(bytes) => format!("{}{AND_ONE}", SIZE.show(bytes)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_packets_or_bytes() {
        for (text, limit) in [
            ("84p", QueueLimit::Packets(84)),
            ("100kB", QueueLimit::Bytes(100_000)),
            ("1500B", QueueLimit::Bytes(1500)),
            ("100kB+1p", QueueLimit::BytesAndOne(100_000)),
        ] {
            assert_eq!(parse_queue(text), Ok(limit));
            assert_eq!(show_queue(limit), text);
        }
        assert!(parse_queue("84p+1p").is_err() && parse_queue("+1p").is_err());
        assert!(parse_queue("100kB+2p").is_err());
        for text in ["84", "84 packets", "", "p", "\u{e9}p"] {
            let refused = parse_queue(text).expect_err("must be refused");
            assert!(refused.remedy.contains("\"84p\""), "{refused}: {}", refused.remedy);
        }
    }
}
