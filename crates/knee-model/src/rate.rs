//! Rate of a link over time.

use crate::{DeliveryTrace, Steps};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Work of one byte at 1 bit/s, ns.
const BIT_NS: u64 = 8 * 1_000_000_000;

/// A rate that is not constant.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Varying {
    /// From these times (ns) on these rates (bit/s) instead, 0 for an outage; in order of time.
    Steps(Vec<(u64, u64)>),
    /// The delivery opportunities of a trace.
    Trace(Arc<DeliveryTrace>),
}

/// Rate of a link over time.
#[derive(Clone, Copy, Debug)]
pub struct Rate<'a> {
    /// The rate until it changes, bit/s; no matter where there is a trace.
    pub bps: u64,
    /// Its variation; none: constant.
    pub varying: Option<&'a Varying>,
}

impl Rate<'_> {
    /// Mean rate from `from_ns` to `to_ns`, bit/s. For a trace, this is the rate of the packets of 1500 bytes
    /// that it could deliver.
    pub fn mean_bps(&self, from_ns: u64, to_ns: u64) -> f64 {
        let Some(varying) = self.varying else { return self.bps as f64 };
        let length_ns = to_ns.saturating_sub(from_ns);
        if length_ns == 0 {
            return 0.0;
        }
        let bit_ns = match varying {
            Varying::Steps(steps) => {
                let mut steps = Steps::new(self.bps, steps);
                let (mut now_ns, mut done) = (from_ns, 0.0);
                while now_ns < to_ns {
                    let bps = steps.at(now_ns);
                    let end_ns = steps.until_ns().min(to_ns);
                    done += bps as f64 * (end_ns - now_ns) as f64;
                    now_ns = end_ns;
                }
                done
            }
            Varying::Trace(trace) => {
                trace.opportunities(from_ns, to_ns) as f64
                    * (DeliveryTrace::PACKET_BYTES * BIT_NS) as f64
            }
        };
        bit_ns / length_ns as f64
    }

    /// Highest rate, bit/s; of a trace, in its busiest second.
    pub fn highest_bps(&self) -> u64 {
        match self.varying {
            None => self.bps,
            Some(Varying::Steps(steps)) => {
                steps.iter().map(|(_, bps)| *bps).fold(self.bps, u64::max)
            }
            Some(Varying::Trace(trace)) => trace.busiest_bps(),
        }
    }
}
