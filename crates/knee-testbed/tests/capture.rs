//! The packets of a run in a file.

#![allow(missing_docs)]

mod common;

use common::{S, bulk, spec, ten_mbit};
use knee_model::RunOptions;
use knee_testbed::run;
use pcap_file::{
    DataLink,
    pcapng::{Block, PcapNgReader, blocks::enhanced_packet::EnhancedPacketOption},
};
use std::{fs::File, time::SystemTime};

#[test]
fn every_packet_once_at_each_place() {
    // A slow machine may need longer for packets of each kind.
    let enough = [2, 8, 32].into_iter().any(captured_whole);
    assert!(enough, "not in 32 s");
}

/// Returns whether a run of so many seconds drops and loses packets and acknowledges more than a hundred.
fn captured_whole(duration_s: u64) -> bool {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("run.pcapng");
    let options = RunOptions { pcap: Some(file.clone()), ..RunOptions::default() };
    let mut spec = spec(ten_mbit(5), duration_s * S, vec![bulk("bulk")]);
    (spec.path.hops[0].loss, spec.path.loss_reverse) = (0.01, 0.01);
    let before = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).expect("after 1970");
    let outcome = run(&spec, &options, None).unwrap_or_else(|e| panic!("{e}"));
    let again = run(&spec, &options, None);
    let error = again.expect_err("the file exists");
    assert!(error.why.starts_with("cannot write the packets to"), "{error}");

    let mut reader = PcapNgReader::new(File::open(&file).expect("there")).expect("pcapng");
    let mut counts = [[0u64; 2]; 3];
    let mut comments = Vec::new();
    let mut last = before;
    while let Some(block) = reader.next_block() {
        match block.expect("a whole block") {
            Block::InterfaceDescription(interface) => assert_eq!(interface.linktype, DataLink::RAW),
            Block::EnhancedPacket(packet) => {
                let forward = packet.data[12..14] == [10, 1];
                counts[packet.interface_id as usize][usize::from(forward)] += 1;
                assert_eq!(packet.data.len(), packet.original_len as usize);
                for option in &packet.options {
                    if let EnhancedPacketOption::Comment(comment) = option {
                        comments.push(comment.to_string());
                    }
                }
                // A drop is noted at its own time, which may lie before the last packet's.
                if packet.interface_id < 2 {
                    assert!(packet.timestamp >= last, "in order");
                    last = packet.timestamp;
                }
            }
            other => panic!("{other:?}"),
        }
    }
    let c = &outcome.flows[0].counters;
    let [sender, receiver, lost] = counts;
    assert_eq!(sender[1], c.sent_pkts);
    assert_eq!(receiver[1], c.delivered_pkts + c.duplicate_pkts);
    assert_eq!(lost[1], c.queue_drops_pkts + c.random_losses_pkts);
    assert_eq!(lost[0], c.ack_losses_pkts);
    assert!(receiver[0] >= sender[0] + lost[0], "{counts:?}");
    let count = |what: &str| comments.iter().filter(|c| *c == what).count() as u64;
    assert_eq!((count("dropped"), count("lost")), (c.queue_drops_pkts, c.random_losses_pkts));
    assert!(last > before);
    c.queue_drops_pkts > 0 && c.random_losses_pkts > 0 && sender[0] > 100
}
