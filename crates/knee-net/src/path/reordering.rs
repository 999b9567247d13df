//! Reordering on the way from a hop to the path's end.

use crate::{DelayLine, Loss, Overtaking};
use knee_model::{Ns, PathSpec, Random};

/// Packets that reach the path's end in another order than they left the hop.
pub(super) struct Reordering<P> {
    probability: Loss,
    extra_delay_ns: Ns,
    /// The link's random stream, not a flow's: the link delays packets.
    random: Random,
    /// Packets overtake earlier ones when the forward delay falls.
    falls_reorder: bool,
    /// The forward delay of the latest packet.
    delay_ns: Ns,
    /// Packets that later ones may overtake.
    pub(super) late: Overtaking<P>,
}

impl<P: Default> Reordering<P> {
    pub(super) fn of(path: &PathSpec, seed: u64, hop: u64) -> Option<Box<Self>> {
        if path.reorder.is_none() && !path.falls_reorder {
            return None;
        }
        Some(Box::new(Self {
            probability: Loss::new(path.reorder.map_or(0.0, |r| r.probability)),
            extra_delay_ns: path.reorder.map_or(0, |r| r.extra_delay_ns),
            random: Random::stream(seed, "reordering", hop),
            falls_reorder: path.falls_reorder,
            delay_ns: 0,
            late: Overtaking::default(),
        }))
    }

    /// A packet sets out for the path's end, with the others that are `in_order`.
    pub(super) fn set_out(
        &mut self,
        in_order: &mut DelayLine<P>,
        now_ns: Ns,
        delay_ns: Ns,
        jitter_ns: Ns,
        packet: P,
    ) {
        if self.falls_reorder && delay_ns < self.delay_ns {
            // The packets that left before keep their times, and no longer hold up those behind them.
            let mut before = std::mem::take(in_order);
            while let Some((due_ns, packet)) = before.take() {
                self.late.push(due_ns, packet);
            }
        }
        self.delay_ns = delay_ns;
        let delay_ns = delay_ns + jitter_ns;
        if self.probability.loses(&mut self.random) {
            self.late.push(now_ns + delay_ns + self.extra_delay_ns, packet);
        } else {
            in_order.push(now_ns, delay_ns, packet);
        }
    }
}
