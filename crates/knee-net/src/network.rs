//! The event loop: carries out the events of a path and of its endpoints, each at its own time.

use crate::{End, Endpoints, LazyTimer, Numbered, Path, events::Event, timers::Timers};
use knee_model::{Ns, RunSpec};

/// A path with the timers of its endpoints, at some time. It owns no thread, file or clock.
pub struct Network<P, T> {
    /// The path.
    pub path: Path<P>,
    timers: Timers<T>,
    now_ns: Ns,
}

impl<P: Numbered, T: Copy + Ord> Network<P, T> {
    /// The network of `spec` at its start.
    pub fn new(spec: &RunSpec) -> Self {
        Self { path: Path::new(spec), timers: Timers::new(), now_ns: 0 }
    }

    /// The present time.
    #[inline(always)]
    pub fn now_ns(&self) -> Ns {
        self.now_ns
    }

    /// The time of the next event; [`crate::NEVER`] if none is due.
    pub fn next_due_ns(&self) -> Ns {
        self.path.first().1
    }

    /// A packet sets out from this end of its flow, now.
    #[inline(always)]
    pub fn offer(&mut self, packet: P, from: End) {
        self.path.offer(self.now_ns, packet, from);
    }

    /// Sets a timer of `flow` that expires once, at `due_ns`; [`crate::NEVER`]: it does not expire.
    pub fn set_timer(&mut self, due_ns: Ns, flow: u32, timer: T) {
        self.timers.push(due_ns, flow, timer);
        self.path.set_timer(self.timers.next_ns());
    }

    /// Sets the lazy timer of `flow` to `due_ns`; [`crate::NEVER`]: it does not expire.
    #[inline(always)]
    pub fn arm(&mut self, lazy: &mut LazyTimer, due_ns: Ns, flow: u32, timer: T) {
        if self.timers.arm(lazy, due_ns, flow, timer) {
            self.path.set_timer(self.timers.next_ns());
        }
    }

    /// Handles a lazy timer of `flow` that came up; `due_ns` is its due time. Returns whether it is due; a
    /// timer that was put off is armed again.
    pub fn came_up(&mut self, lazy: &mut LazyTimer, due_ns: Ns, flow: u32, timer: T) -> bool {
        self.timers.came_up(lazy, self.now_ns, due_ns, flow, timer)
    }

    /// Carries out all events that are due by `until_ns`, in the order of their times; those of the same
    /// instant in the order of `Event`. The present is `until_ns` then.
    ///
    /// # Errors
    /// An error of the endpoints.
    pub fn advance_to<E>(&mut self, until_ns: Ns, endpoints: &mut E) -> Result<(), E::Error>
    where
        E: Endpoints<Self, Packet = P, Timer = T>,
    {
        loop {
            while let Some(lost) = self.path.take_lost() {
                endpoints.on_lost(lost)?;
            }
            let (event, due_ns) = self.path.first();
            if due_ns > until_ns {
                self.now_ns = until_ns;
                return Ok(());
            }
            debug_assert!(due_ns >= self.now_ns, "an event before its time");
            self.now_ns = due_ns;
            match event {
                Event::Timer => self.expire_timer(endpoints)?,
                Event::BinEnd => self.close_bin(endpoints),
                _ => {
                    if let Some((packet, direction)) = self.path.carry_out(event, due_ns) {
                        endpoints.arrive(packet, direction, self)?;
                    }
                }
            }
        }
    }

    /// Ends the last of the `bins` of the time series of a run that is at its end, if it is shorter than
    /// the others.
    pub fn close_last_bin<E>(&mut self, endpoints: &mut E, bins: usize)
    where
        E: Endpoints<Self, Packet = P, Timer = T>,
    {
        if self.path.queues().any(|queue| queue.bins.len() < bins) {
            self.close_bin(endpoints);
        }
    }

    fn close_bin<E>(&mut self, endpoints: &mut E)
    where
        E: Endpoints<Self, Packet = P, Timer = T>,
    {
        endpoints.close_bin(self.now_ns, &self.path);
        self.path.close_bin(self.now_ns);
    }

    fn expire_timer<E>(&mut self, endpoints: &mut E) -> Result<(), E::Error>
    where
        E: Endpoints<Self, Packet = P, Timer = T>,
    {
        if let Some((_, flow, timer)) = self.timers.pop() {
            endpoints.on_timer(flow, timer, self)?;
        }
        self.path.set_timer(self.timers.next_ns());
        Ok(())
    }
}
