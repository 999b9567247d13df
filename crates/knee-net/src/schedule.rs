//! Earliest of a fixed set of event sources.

use crate::NEVER;

/// Up to this many sources are searched linearly, which is faster than the tree.
const FEW: usize = 1 << FEW_BITS;
const FEW_BITS: u32 = 4;
/// Most runs have no more than these.
const HALF: usize = FEW / 2;
/// What stands for [`NEVER`] beside a source's number; 36 years.
const LATEST: u64 = u64::MAX >> FEW_BITS;

/// Knows when each source is next due, and which is first. Of sources due at the same time the
/// lowest-numbered one is first.
///
/// A handful of sources is searched linearly; more are kept in a tournament tree, O(log n)
/// per change.
pub struct Schedule {
    /// If there are no more than [`FEW`] sources: due time and number of each in one word, so that
    /// the smallest word is the first source. The second half is used if there are more than [`HALF`].
    few: [u64; FEW],
    uses_both_halves: bool,
    /// No source but the one that [`Schedule::stay`] was asked for is due before; 0 if that is not known.
    others_ns: u64,
    /// If there are more: due time and number of the first source below each node. Node 1 is the root, node
    /// n has children 2n and 2n+1; the second half are the leaves, one for each source.
    tree: Vec<(u64, u32)>,
}

impl Schedule {
    /// `sources` sources, none due.
    pub fn new(sources: usize) -> Self {
        let mut new = Self {
            few: [u64::MAX; FEW],
            uses_both_halves: sources > HALF,
            others_ns: 0,
            tree: Vec::new(),
        };
        if sources > FEW {
            let leaves = sources.next_power_of_two();
            new.tree = vec![(NEVER, 0); 2 * leaves];
            for (leaf, number) in new.tree[leaves..].iter_mut().zip(0..) {
                leaf.1 = number;
            }
            for node in (1..leaves).rev() {
                new.tree[node] = new.tree[2 * node];
            }
        }
        new
    }

    /// Source `source` is next due at `due_ns` ([`NEVER`]: it is not).
    #[inline(always)]
    pub fn set(&mut self, source: usize, due_ns: u64) {
        if due_ns < self.others_ns {
            self.others_ns = due_ns;
        }
        if self.tree.is_empty() {
            self.few[source] = (due_ns.min(LATEST) << FEW_BITS) | source as u64;
        } else {
            self.set_leaf(source, due_ns);
        }
    }

    #[inline(never)]
    fn set_leaf(&mut self, source: usize, due_ns: u64) {
        let tree = &mut self.tree[..];
        let mut node = tree.len() / 2 + source;
        let mut first = (due_ns, source as u32);
        while tree[node] != first {
            tree[node] = first;
            if node == 1 {
                return;
            }
            // Of two at the same time the left one, which has the lower number.
            let (left, right) = (tree[node & !1], tree[node | 1]);
            first = if right.0 < left.0 { right } else { left };
            node /= 2;
        }
    }

    /// The first source and when it is due.
    #[inline]
    pub fn first(&self) -> (usize, u64) {
        if let Some(&(due_ns, source)) = self.tree.get(1) {
            return (source as usize, due_ns);
        }
        let first = self.least();
        let due_ns = first >> FEW_BITS;
        ((first % FEW as u64) as usize, if due_ns == LATEST { NEVER } else { due_ns })
    }

    /// The least word.
    #[inline(always)]
    fn least(&self) -> u64 {
        let least = |words: &[u64]| match *words {
            [a, b, c, d, e, f, g, h] => a.min(b).min(c.min(d)).min(e.min(f).min(g.min(h))),
            _ => u64::MAX,
        };
        let first = least(&self.few[..HALF]);
        if self.uses_both_halves { first.min(least(&self.few[HALF..])) } else { first }
    }

    /// Source `source` is about to act, and again up to [`Schedule::leave`] as long as
    /// [`Schedule::comes_first`] says so: it need not be set meanwhile.
    pub fn stay(&mut self, source: usize) {
        // In the tree a search for the others would be as long as the one that is saved.
        if self.tree.is_empty() {
            self.few[source] = u64::MAX;
            self.others_ns = self.first().1;
        }
    }

    /// Whether the source that [`Schedule::stay`] was asked for comes before all others if it is due at
    /// `due_ns`.
    #[inline(always)]
    pub fn comes_first(&self, due_ns: u64) -> bool {
        due_ns < self.others_ns
    }

    /// The end of what [`Schedule::stay`] began; `source` is next due at `due_ns`.
    pub fn leave(&mut self, source: usize, due_ns: u64) {
        self.others_ns = 0;
        self.set(source, due_ns);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn gives_the_earliest_then_the_lowest(
            n in 1usize..40,
            changes in prop::collection::vec((0usize..40, prop_oneof![0u64..8, Just(NEVER)]), 1..200),
        ) {
            let mut schedule = Schedule::new(n);
            let mut due = vec![NEVER; n];
            for (source, at) in changes {
                let source = source % n;
                schedule.set(source, at);
                due[source] = at;
                let earliest = *due.iter().min().expect("n > 0");
                let (first, first_due) = schedule.first();
                prop_assert_eq!(first_due, earliest);
                if earliest != NEVER {
                    prop_assert_eq!(Some(first), due.iter().position(|&d| d == earliest));
                }
            }
        }
    }
}
