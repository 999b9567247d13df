//! The packets of the kernel for a file of the host's. Their payload, zeros, is left out.

use crate::{
    kernel,
    message::{Captured, Message},
    output::Output,
    skb::Skb,
};
use knee_model::{HostError, Ns};
use knee_net::{
    Ecn, Packet,
    headers::{self, Body, Headers},
};
use std::mem;

/// Packets that are sent together.
const PACKETS: usize = 256;

/// The packets that were not sent yet.
#[derive(Default)]
pub(crate) struct Capture {
    wanted: bool,
    packets: Vec<Captured>,
}

impl Capture {
    /// A capture; one that is not wanted notes nothing.
    pub(crate) fn new(wanted: bool) -> Self {
        Self { wanted, packets: Vec::new() }
    }

    /// Notes a packet at the end `end`, or that it was lost.
    pub(crate) fn note(&mut self, skb: &Skb, time_ns: Ns, end: u32, lost: Option<&str>) {
        if !self.wanted {
            return;
        }
        let packet = kernel::packet(skb.skb);
        let start = packet.start();
        let Some(Headers { body: Body::Tcp { headers_bytes, .. }, .. }) =
            headers::parse(start, packet.bytes)
        else {
            return;
        };
        let mut headers = start[..start.len().min(headers_bytes as usize)].to_vec();
        if skb.ecn() == Ecn::Marked {
            headers::mark(&mut headers);
        }
        headers::set_checksum_of_zeros(&mut headers, packet.bytes);
        self.packets.push(Captured {
            time_ns,
            end: end as u8,
            lost: lost.map(str::to_owned),
            headers,
            bytes: packet.bytes,
        });
    }

    /// Sends the packets noted, if they are many or these are the last ones.
    pub(crate) fn send(&mut self, output: &mut Output, last: bool) -> Result<(), HostError> {
        if self.packets.len() < PACKETS && (!last || self.packets.is_empty()) {
            return Ok(());
        }
        output.send(&Message::Packets(mem::take(&mut self.packets)))
    }
}
