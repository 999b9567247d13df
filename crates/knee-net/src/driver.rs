//! The one loop: carries out what is due on a path and at its ends.

use crate::{
    Brief, Direction, End, Gone, LazyTimer, Numbered, Path,
    path::{Answer, Back, Source},
    timers::Timers,
};
use knee_model::{Ns, RunSpec};

/// How many places ahead of an arrival the memory of its flow is asked for, and then what that points to.
const FAR: usize = 12;
const NEAR: usize = 6;

/// The two ends of a path.
pub trait Ends {
    /// What they send.
    type Packet: Numbered;
    /// Their timers; of one flow's, due at the same time, the least comes first.
    type Timer: Copy + Ord;
    /// What can go wrong.
    type Error;

    /// A packet reaches an end of the path.
    ///
    /// # Errors
    /// The ends'.
    fn arrive(
        &mut self,
        packet: Self::Packet,
        direction: Direction,
        network: &mut Network<Self::Packet, Self::Timer>,
    ) -> Result<(), Self::Error>;

    /// What is answered to data that arrived at `at_ns`, which may be past; asked instead of
    /// [`Ends::arrive`] in networks that are [`Network::foreseeing`], where the spec has every arrival
    /// answered at once.
    fn answer(&mut self, data: Brief, at_ns: Ns) -> Option<Self::Packet> {
        let _ = (data, at_ns);
        None
    }

    /// What is answered to data that arrived at `at_ns` arrives now, if it is not lost on its way back: see
    /// [`Ends::answer`].
    ///
    /// # Errors
    /// The ends'.
    #[inline(always)]
    fn come_round(
        &mut self,
        data: Brief,
        at_ns: Ns,
        network: &mut Network<Self::Packet, Self::Timer>,
    ) -> Result<(), Self::Error> {
        let answer = self.answer(data, at_ns);
        match answer.and_then(|answer| network.gets_back(at_ns, answer)) {
            Some(answer) => self.come_back(answer, network),
            None => Ok(()),
        }
    }

    /// What [`Ends::answer`] gave arrives now.
    ///
    /// # Errors
    /// The ends'.
    #[inline(always)]
    fn come_back(
        &mut self,
        answer: Self::Packet,
        network: &mut Network<Self::Packet, Self::Timer>,
    ) -> Result<(), Self::Error> {
        self.arrive(answer, Direction::Reverse, network)
    }

    /// A timer of `flow` comes up; for lazy ones see [`Network::came_up`].
    ///
    /// # Errors
    /// The ends'.
    fn on_timer(
        &mut self,
        flow: u32,
        timer: Self::Timer,
        network: &mut Network<Self::Packet, Self::Timer>,
    ) -> Result<(), Self::Error>;

    /// A packet was lost or dropped. The path has counted it.
    ///
    /// # Errors
    /// The ends'.
    fn gone(&mut self, gone: Gone<Self::Packet>) -> Result<(), Self::Error>;

    /// A bin of the time series ends.
    fn close_bin(&mut self, now_ns: Ns, path: &Path<Self::Packet>);

    /// Whether to say which flows come soon: it is worth while where their memory is not in the cache.
    #[inline]
    fn looks_ahead(&self) -> bool {
        false
    }

    /// Something of `flow` comes soon.
    #[inline]
    fn comes_soon(&self, flow: u32) {
        let _ = flow;
    }

    /// Something of `flow` comes sooner than that.
    #[inline]
    fn comes_next(&self, flow: u32) {
        let _ = flow;
    }
}

/// Ends that answer.
struct Answering<'a, E>(&'a mut E);

impl<E: Ends> Answer<E::Packet> for Answering<'_, E> {
    #[inline(always)]
    fn answer(&mut self, data: Brief, at_ns: Ns) -> Option<E::Packet> {
        self.0.answer(data, at_ns)
    }
}

/// A path with the timers of its ends, at some time.
pub struct Network<P, T> {
    path: Path<P>,
    timers: Timers<T>,
    now_ns: Ns,
}

impl<P: Numbered, T: Copy + Ord> Network<P, T> {
    /// The network of `spec` at its start.
    pub fn new(spec: &RunSpec) -> Self {
        Self { path: Path::new(spec), timers: Timers::new(), now_ns: 0 }
    }

    /// The network of `spec` at its start, for ends that can say what they answer to a packet as soon as
    /// its arrival is known ([`Ends::answer`]). What happens is the same, with fewer events.
    pub fn foreseeing(spec: &RunSpec) -> Self {
        Self { path: Path::foreseeing(spec), timers: Timers::new(), now_ns: 0 }
    }

    /// The present.
    #[inline(always)]
    pub fn now_ns(&self) -> Ns {
        self.now_ns
    }

    /// The path.
    pub fn path(&self) -> &Path<P> {
        &self.path
    }

    /// Ends it; the timers that remain never come up.
    pub fn into_path(self) -> Path<P> {
        self.path
    }

    /// Sends a packet from this end of its flow, now.
    #[inline(always)]
    pub fn send(&mut self, packet: P, from: End) {
        self.path.send(self.now_ns, packet, from);
    }

    /// `answer` starts on its way back at `at_ns`, which may be past; it, if it is not lost.
    #[inline(always)]
    pub(crate) fn gets_back(&mut self, at_ns: Ns, answer: P) -> Option<P> {
        self.path.gets_back(at_ns, answer)
    }

    /// A timer of `flow` that is due once, at `due_ns` ([`crate::NEVER`]: it is not).
    pub fn set_timer(&mut self, due_ns: Ns, flow: u32, timer: T) {
        self.timers.push(due_ns, flow, timer);
        self.path.set_timers(self.timers.next_ns());
    }

    /// The lazy timer of `flow` is due at `due_ns` ([`crate::NEVER`]: it is not).
    #[inline(always)]
    pub fn arm(&mut self, lazy: &mut LazyTimer, due_ns: Ns, flow: u32, timer: T) {
        if self.timers.arm(lazy, due_ns, flow, timer) {
            self.path.set_timers(self.timers.next_ns());
        }
    }

    /// A lazy timer of `flow` came up: whether it is due, which is at `due_ns`. If it was put off it is
    /// armed again.
    pub fn came_up(&mut self, lazy: &mut LazyTimer, due_ns: Ns, flow: u32, timer: T) -> bool {
        self.timers.came_up(lazy, self.now_ns, due_ns, flow, timer)
    }

    /// Reports to the ends what was lost or dropped.
    #[inline(never)]
    fn tell_gone<E>(&mut self, ends: &mut E) -> Result<(), E::Error>
    where
        E: Ends<Packet = P, Timer = T>,
    {
        while let Some(gone) = self.path.take_gone() {
            ends.gone(gone)?;
        }
        Ok(())
    }

    /// Makes up for what happened on the path before `until_ns`, in so far as nobody has looked at it.
    fn settle_all<E>(&mut self, ends: &mut E, until_ns: Ns) -> Result<(), E::Error>
    where
        E: Ends<Packet = P, Timer = T>,
    {
        self.path.settle_all(until_ns);
        if self.path.goes_round() {
            self.path.settle_answers(until_ns, &mut Answering(ends));
        }
        self.tell_gone(ends)
    }

    fn close_bin<E>(&mut self, ends: &mut E) -> Result<(), E::Error>
    where
        E: Ends<Packet = P, Timer = T>,
    {
        self.settle_all(ends, self.now_ns)?;
        ends.close_bin(self.now_ns, &self.path);
        self.path.close_bin(self.now_ns);
        Ok(())
    }

    /// Tells of the flow of which something comes that many places after what comes next.
    #[inline(always)]
    fn look_ahead<E>(&self, ends: &E, flow: impl Fn(&Path<P>, usize) -> Option<u32>)
    where
        E: Ends<Packet = P, Timer = T>,
    {
        if !ends.looks_ahead() {
            return;
        }
        if let Some(flow) = flow(&self.path, FAR) {
            ends.comes_soon(flow);
            self.path.comes_soon(flow);
        }
        flow(&self.path, NEAR).inspect(|flow| ends.comes_next(*flow));
    }

    #[inline(always)]
    fn arrive_at_end<E>(&mut self, hop: usize, ends: &mut E) -> Result<(), E::Error>
    where
        E: Ends<Packet = P, Timer = T>,
    {
        let Some(packet) = self.path.arrive(hop, self.now_ns) else { return Ok(()) };
        self.look_ahead(ends, |path, places| path.peek_end(places).map(P::flow));
        ends.arrive(packet, Direction::Forward, self)
    }

    #[inline(never)]
    fn arrive_from_later<E>(&mut self, hop: usize, ends: &mut E) -> Result<(), E::Error>
    where
        E: Ends<Packet = P, Timer = T>,
    {
        self.arrive_at_end(hop, ends)
    }

    #[inline(always)]
    fn arrive_at_start<E>(&mut self, class: usize, ends: &mut E) -> Result<(), E::Error>
    where
        E: Ends<Packet = P, Timer = T>,
    {
        self.look_ahead(ends, |path, places| path.peek_start(class, places).map(P::flow));
        match self.path.return_to_start(class, self.now_ns) {
            Some(packet) => ends.arrive(packet, Direction::Reverse, self),
            None => Ok(()),
        }
    }

    /// The same where packets go round; `again`: it may be followed by what else of `class` is back by
    /// `until_ns` before anything else happens.
    #[inline(never)]
    fn come_round<E>(
        &mut self,
        class: usize,
        ends: &mut E,
        again: bool,
        until_ns: Ns,
    ) -> Result<(), E::Error>
    where
        E: Ends<Packet = P, Timer = T>,
    {
        if again {
            self.path.stay(class);
        }
        let mut next = self.path.come_round(class);
        while let Some(back) = next {
            // `back` has left the round already.
            self.look_ahead(ends, |path, places| path.peek_round(class, places - 1));
            match back {
                Back::ToAnswer(at_ns, data) => ends.come_round(data, at_ns, self)?,
                Back::Answer(answer) => ends.come_back(answer, self)?,
            }
            if self.path.has_gone() {
                self.tell_gone(ends)?;
            }
            next = self.path.comes_round_too(class, until_ns).map(|(due_ns, back)| {
                self.now_ns = due_ns;
                self.path.settle(due_ns + 1);
                back
            });
        }
        self.path.leave(class);
        Ok(())
    }

    #[inline(never)]
    fn depart_from_later(&mut self, hop: usize) {
        self.path.depart(hop, self.now_ns);
    }

    fn on_timer<E>(&mut self, ends: &mut E) -> Result<(), E::Error>
    where
        E: Ends<Packet = P, Timer = T>,
    {
        if let Some((_, flow, timer)) = self.timers.pop() {
            if ends.looks_ahead() {
                self.timers.after_first().for_each(|flow| ends.comes_soon(flow));
            }
            ends.on_timer(flow, timer, self)?;
        }
        self.path.set_timers(self.timers.next_ns());
        Ok(())
    }
}

/// Carries out all that is due by `until_ns`, each at its own time; then advances to that time.
///
/// # Errors
/// The ends'.
pub fn drive<E: Ends>(
    network: &mut Network<E::Packet, E::Timer>,
    ends: &mut E,
    until_ns: Ns,
) -> Result<(), E::Error> {
    // The class of which a packet came round just before: of a class that came twice more will come.
    let mut class_before = None;
    loop {
        // Also of what the ends sent before.
        if network.path.has_gone() {
            network.tell_gone(ends)?;
        }
        let (source, due_ns) = network.path.first();
        if due_ns > until_ns {
            network.now_ns = until_ns;
            return network.settle_all(ends, until_ns.saturating_add(1));
        }
        debug_assert!(due_ns >= network.now_ns, "an event before its time");
        network.now_ns = due_ns;
        // Departures come after bins and timers of the same instant, before all else.
        let later = !matches!(source, Source::Bins | Source::Timers);
        network.path.settle(due_ns + Ns::from(later));
        let class_twice_before = std::mem::take(&mut class_before);
        match source {
            Source::Bins => network.close_bin(ends)?,
            Source::Timers => network.on_timer(ends)?,
            Source::Departure(0) => network.path.depart(0, due_ns),
            Source::Arrival(0) => network.arrive_at_end(0, ends)?,
            Source::Hop(class) => network.path.enter(class, due_ns),
            Source::Start(class) if network.path.goes_round() => {
                class_before = Some(class);
                network.come_round(class, ends, class_twice_before == class_before, until_ns)?;
            }
            Source::Start(class) => network.arrive_at_start(class, ends)?,
            Source::ReverseDeparture => network.path.depart_reverse(due_ns),
            Source::Departure(hop) => network.depart_from_later(hop),
            Source::Arrival(hop) => network.arrive_from_later(hop, ends)?,
            Source::Approach(hop) => network.path.approach(hop, due_ns),
        }
    }
}

/// Ends the last of the `bins` of the time series of a run that was driven to its end, if it is
/// shorter than the others.
///
/// # Errors
/// The ends'.
pub fn close_last_bin<E: Ends>(
    network: &mut Network<E::Packet, E::Timer>,
    ends: &mut E,
    bins: usize,
) -> Result<(), E::Error> {
    if network.path.queues().any(|queue| queue.bins.len() < bins) {
        network.close_bin(ends)?;
    }
    Ok(())
}
