//! Numbers in a row, of which most are like the one before.

use crate::Ring;

/// First in, first out. Equal numbers next to each other take the memory of one.
#[derive(Clone, Debug, Default)]
pub(crate) struct Runs {
    /// Value and length of the first run; of length 0 if there is none.
    first: (u32, u32),
    /// The runs behind it.
    rest: Ring<(u32, u32)>,
}

impl Runs {
    /// Appends a number.
    #[inline(always)]
    pub(crate) fn push(&mut self, value: u32) {
        if self.first.0 == value && self.rest.is_empty() {
            self.first.1 += 1;
        } else {
            self.push_other(value);
        }
    }

    #[inline(never)]
    fn push_other(&mut self, value: u32) {
        if self.first.1 == 0 {
            self.first = (value, 1);
            return;
        }
        match self.rest.back_mut() {
            Some((last, length)) if *last == value => *length += 1,
            _ => self.rest.push_back((value, 1)),
        }
    }

    /// The first number.
    #[inline(always)]
    pub(crate) fn front(&self) -> Option<u32> {
        (self.first.1 > 0).then_some(self.first.0)
    }

    /// Takes the first number.
    #[inline(always)]
    pub(crate) fn take(&mut self) -> Option<u32> {
        let value = self.front()?;
        self.first.1 -= 1;
        if self.first.1 == 0
            && let Some(next) = self.rest.take_front()
        {
            self.first = next;
        }
        Some(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::VecDeque;

    proptest! {
        /// Against a queue.
        #[test]
        fn keeps_every_number(
            steps in prop::collection::vec(prop::option::weighted(0.6, 0u32..3), 1..400),
        ) {
            let (mut runs, mut model) = (Runs::default(), VecDeque::new());
            for step in steps {
                match step {
                    Some(value) => {
                        runs.push(value);
                        model.push_back(value);
                    }
                    None => prop_assert_eq!(runs.take(), model.pop_front()),
                }
                prop_assert_eq!(runs.front(), model.front().copied());
            }
        }
    }
}
