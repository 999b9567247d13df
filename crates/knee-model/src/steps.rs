//! A value that changes at given times.

/// The time of a change that never comes.
const NEVER: u64 = u64::MAX;

/// A value over time: one at first, others from given times on.
#[derive(Clone, Debug)]
pub struct Steps {
    value: u64,
    /// Time at which the next value takes over; `u64::MAX`: this is the last.
    until_ns: u64,
    /// All later values, and which of them is next.
    later: Vec<(u64, u64)>,
    next: usize,
}

impl Steps {
    /// `first`, then the values of `later` from their times (ns) on, in order of time.
    pub fn new(first: u64, later: &[(u64, u64)]) -> Self {
        let until_ns = later.first().map_or(NEVER, |(at_ns, _)| *at_ns);
        Self { value: first, until_ns, later: later.to_vec(), next: 0 }
    }

    /// The value at `now_ns`, which must not decrease from call to call.
    #[inline]
    pub fn at(&mut self, now_ns: u64) -> u64 {
        if now_ns >= self.until_ns {
            self.advance(now_ns);
        }
        self.value
    }

    /// Time at which the value of the latest call ends; `u64::MAX`: it does not.
    #[inline]
    pub fn until_ns(&self) -> u64 {
        self.until_ns
    }

    #[cold]
    fn advance(&mut self, now_ns: u64) {
        while let Some(&(at_ns, value)) = self.later.get(self.next)
            && at_ns <= now_ns
        {
            self.value = value;
            self.next += 1;
        }
        self.until_ns = self.later.get(self.next).map_or(NEVER, |(at_ns, _)| *at_ns);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_value_holds_from_its_time_on() {
        let mut steps = Steps::new(1, &[(0, 2), (10, 3), (11, 4), (20, 5)]);
        let values = [0, 9, 10, 15, 19, 20, 1000].map(|now_ns| steps.at(now_ns));
        assert_eq!(values, [2, 2, 3, 4, 4, 5, 5]);
        assert_eq!(Steps::new(7, &[]).at(NEVER - 1), 7);
        let mut two = Steps::new(7, &[(5, 8)]);
        assert_eq!((two.at(4), two.until_ns(), two.at(5), two.until_ns()), (7, 5, 8, NEVER));
    }
}
