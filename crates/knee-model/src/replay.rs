//! Repeats the recorded calls of a flow and compares the results.

use knee_cc::{Call, CallRecord, Params, State};
use std::collections::VecDeque;

/// Calls before a difference that are kept as its context.
const CONTEXT: usize = 3;

/// The recorded calls of one flow, made again natively one after the other. Each call starts from
/// the state that the record before it ends with, so a trace can be joined anywhere.
#[derive(Clone, Debug)]
pub struct Replay {
    params: Params,
    state: Option<State>,
    dropped: u64,
    recent: VecDeque<CallRecord>,
    /// Calls so far.
    pub calls: u64,
    /// Calls that were made again and compared.
    pub compared: u64,
    /// The first call was not `init`: it only gave the state to continue from.
    pub joined: bool,
    /// Calls that did not fit the state before them because records had been dropped: they only gave the
    /// state to continue from.
    pub gaps: u64,
    /// Calls with another result.
    pub differences: u64,
    /// The first of them.
    pub first: Option<Difference>,
}

/// A call with another result.
#[derive(Clone, Debug)]
pub struct Difference {
    /// Number of the call within its flow, from 1.
    pub number: u64,
    /// State that it started from.
    pub state: State,
    /// The calls before it.
    pub before: Vec<CallRecord>,
    /// The call as recorded.
    pub recorded: CallRecord,
    /// The call as made again; none if the record cannot be (an event that does not exist).
    pub again: Option<CallRecord>,
}

impl Replay {
    /// A flow whose algorithm has these parameters.
    pub fn new(params: Params) -> Self {
        Self {
            params,
            state: None,
            dropped: 0,
            recent: VecDeque::new(),
            calls: 0,
            compared: 0,
            joined: false,
            gaps: 0,
            differences: 0,
            first: None,
        }
    }

    /// The flow's next record; `dropped` records had been dropped before it, of this flow or of
    /// another.
    pub fn call(&mut self, record: &CallRecord, dropped: u64) {
        self.calls += 1;
        let starts = record.call == Call::Init;
        match self.state.or(starts.then(State::default)) {
            None => self.joined = true,
            Some(state) => {
                let again = record.again(&self.params, state);
                if again.as_ref() == Some(record) {
                    self.compared += 1;
                } else if !starts && dropped != self.dropped {
                    self.gaps += 1;
                } else {
                    self.compared += 1;
                    self.differences += 1;
                    self.first.get_or_insert_with(|| Difference {
                        number: self.calls,
                        state,
                        before: self.recent.iter().copied().collect(),
                        recorded: *record,
                        again,
                    });
                }
            }
        }
        self.state = Some(record.state);
        self.dropped = dropped;
        if self.recent.len() == CONTEXT {
            self.recent.pop_front();
        }
        self.recent.push_back(*record);
    }
}
