//! The record of a run that is under way, from its host's reports.

use knee_model::{FlowRecord, FlowSample, PathQueues, Progress, QueueRecord, RunRecord, RunSpec};

/// A record of `spec` with no row yet. Its totals stay 0.
pub(crate) fn begun(spec: &RunSpec) -> RunRecord {
    let flows = spec.flows.iter().enumerate();
    let flows = flows.map(|(i, flow)| FlowRecord::of(flow, spec.start_ns(i), spec.duration_ns));
    let queues = PathQueues {
        hops: spec.path.hops.iter().map(|_| QueueRecord::default()).collect(),
        reverse: None,
    };
    RunRecord::new(spec, flows.collect(), queues)
}

/// Adds `told` to `record`. A row beyond the run's end, or of a flow or queue that the run does not have,
/// is left out.
pub(crate) fn add(record: &mut RunRecord, told: Progress) {
    let bins = crate::series::bins(record);
    match told {
        Progress::Flow { flow, bin, part } if bin < bins => {
            let Some(flow) = record.flows.get_mut(flow) else { return };
            if flow.samples.len() <= bin {
                flow.samples.resize(bin + 1, FlowSample::default());
            }
            sum(&mut flow.samples[bin], part);
        }
        Progress::Queue { hop, bin, row } if bin < bins => {
            let Some(queue) = record.queues.get_mut(hop) else { return };
            if queue.bins.len() <= bin {
                queue.bins.resize(bin + 1, knee_model::QueueBin::default());
            }
            queue.bins[bin] = row;
        }
        Progress::Again => {
            record.flows.iter_mut().for_each(|flow| flow.samples.clear());
            record.queues.iter_mut().for_each(|queue| queue.bins.clear());
        }
        Progress::At(_) | Progress::Flow { .. } | Progress::Queue { .. } => {}
    }
}

/// Parts of a row have different fields, the others 0.
fn sum(row: &mut FlowSample, part: FlowSample) {
    row.delivered_bytes += part.delivered_bytes;
    row.sent_pkts += part.sent_pkts;
    row.lost_pkts += part.lost_pkts;
    row.cwnd_pkts += part.cwnd_pkts;
    row.ssthresh_pkts = row.ssthresh_pkts.saturating_add(part.ssthresh_pkts);
    row.inflight_pkts += part.inflight_pkts;
    row.srtt_us += part.srtt_us;
    for (value, of_part) in row.observed.iter_mut().zip(part.observed) {
        *value = value.saturating_add(of_part);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;

    const TEXT: &str = "duration = \"5s\"\n[record]\nbin = \"10ms\"\n[path]\nrate = \"8mbit\"\nrtt = \
                        \"40ms\"\nqueue = \"50p\"\n[[flow]]\ncc = \"chd\"\n[[flow]]\nkind = \
                        \"udp\"\nrate = \"1mbit\"\nstart = \"1s\"\n";

    #[test]
    fn the_rows_that_are_told_are_those_of_the_record() {
        let spec = crate::spec_to_draw(TEXT).expect("a scenario");
        let told = RefCell::new(begun(&spec));
        add(
            &mut told.borrow_mut(),
            Progress::Flow { flow: 0, bin: 7, part: FlowSample::default() },
        );
        add(&mut told.borrow_mut(), Progress::Again);
        let record =
            knee_sim::run_watched(&spec, &mut |progress| add(&mut told.borrow_mut(), progress));
        let (told, record) = (told.into_inner(), record.expect("runs"));
        for (told, flow) in told.flows.iter().zip(&record.flows) {
            assert!(flow.samples.len() > 400 && told.samples == flow.samples, "{}", flow.name);
        }
        // The last row of a queue comes with the record.
        let [told, queue] = [&told, &record].map(|record| &record.queues[0].bins);
        assert_eq!(told[..], queue[..queue.len() - 1]);
    }

    #[test]
    fn parts_of_a_row_add_up_and_rows_beyond_the_end_are_left_out() {
        let spec = crate::spec_to_draw(TEXT).expect("a scenario");
        let mut record = begun(&spec);
        let last = crate::series::bins(&record) - 1;
        let state = FlowSample { cwnd_pkts: 9, ..FlowSample::default() };
        let sent = FlowSample { sent_pkts: 4, ..FlowSample::default() };
        for (bin, part) in [(last, state), (last, sent), (last + 1, state)] {
            add(&mut record, Progress::Flow { flow: 0, bin, part });
        }
        assert_eq!(record.flows[0].samples.len(), last + 1);
        assert_eq!(record.flows[0].samples[last], FlowSample { cwnd_pkts: 9, ..sent });
    }
}
