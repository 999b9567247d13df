//! Messages between the guest and the machine: ports of devices that every QEMU for x86 has.
//!
//! The guest writes lines to a port ([`LINES`]); it halts the machine with its own ([`HALT`]), at
//! the very instruction; it reads what the machine was given at its start ([`INPUT`]) without any
//! time passing between. So nothing that the real machine does has a time in the guest.

/// QEMU's `isa-debugcon`: bytes written here come out of the machine.
pub(crate) const LINES: u16 = 0xe9;
/// QEMU's `pvpanic`, with the action `pause`: writing [`HALT_NOW`] halts the machine.
pub(crate) const HALT: u16 = 0x505;
/// The guest says that it has panicked. It is how a guest can ask to be halted.
pub(crate) const HALT_NOW: u8 = 1;
/// QEMU's `fw_cfg`: number of an item, and its bytes.
pub(crate) const ITEM: u16 = 0x510;
pub(crate) const DATA: u16 = 0x511;
/// The item that lists the others, from 0x20 on by name.
pub(crate) const DIRECTORY: u16 = 0x19;
/// Name of the item that tells a run.
pub(crate) const INPUT: &str = "opt/knee/run";

/// The message of a line of the guest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Line {
    /// It waits for its task, and halts at about this time of its clock, ns.
    Ready(u64),
    /// So many nanoseconds of the run are over.
    Progress(u64),
    /// The results lie in its memory, and it halts.
    Results(Vec<Extent>),
    /// The run took too long.
    OutOfBudget,
}

/// A part of the guest process's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Extent {
    /// Virtual address.
    pub address: u64,
    /// Length.
    pub bytes: u64,
    /// CRC-32 of the contents.
    pub crc: u32,
}

impl Line {
    /// Returns its text, without the end of the line.
    pub(crate) fn to_text(&self) -> String {
        match self {
            Self::Ready(ns) => format!("ready {ns}"),
            Self::Progress(ns) => format!("progress {ns}"),
            Self::OutOfBudget => "budget".to_owned(),
            Self::Results(extents) => {
                let mut text = "results".to_owned();
                for Extent { address, bytes, crc } in extents {
                    text += &format!(" {address}:{bytes}:{crc}");
                }
                text
            }
        }
    }

    /// Reads what [`Self::to_text`] wrote; none of anything else, such as the firmware's.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let mut words = text.split_whitespace();
        match words.next()? {
            "ready" => words.next()?.parse().ok().map(Self::Ready),
            "budget" => Some(Self::OutOfBudget),
            "progress" => words.next()?.parse().ok().map(Self::Progress),
            "results" => words.map(Extent::parse).collect::<Option<_>>().map(Self::Results),
            _ => None,
        }
    }
}

impl Extent {
    fn parse(text: &str) -> Option<Self> {
        let mut numbers = text.split(':');
        let extent = Self {
            address: numbers.next()?.parse().ok()?,
            bytes: numbers.next()?.parse().ok()?,
            crc: numbers.next()?.parse().ok()?,
        };
        numbers.next().is_none().then_some(extent)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read_as_they_were_written() {
        let extent = Extent { address: u64::MAX, bytes: 5, crc: 7 };
        for line in [
            Line::Ready(16),
            Line::Progress(17),
            Line::OutOfBudget,
            Line::Results(vec![extent, Extent { bytes: 0, ..extent }]),
        ] {
            assert_eq!(Line::parse(&line.to_text()), Some(line));
        }
        for other in ["", "SeaBIOS", "progress", "results 1:2", "results 1:2:3:4"] {
            assert_eq!(Line::parse(other), None, "{other}");
        }
    }
}
