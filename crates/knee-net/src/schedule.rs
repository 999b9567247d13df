//! Earliest of a fixed set of event sources.

use crate::NEVER;

/// Up to this many sources are searched linearly, which is faster than the tree.
const FEW: usize = 1 << FEW_BITS;
const FEW_BITS: u32 = 4;
/// Most runs have no more than these.
const HALF: usize = FEW / 2;
/// Largest time that fits into a word with a source's number: 36 years. It represents [`NEVER`].
const LATEST: u64 = u64::MAX >> FEW_BITS;

/// Knows when each source is next due, and which is first. If several sources are due at the same time, the
/// lowest-numbered one is first.
///
/// A handful of sources is searched linearly; more are kept in a tree, of which a change reads eight words
/// for each power of eight that there are sources.
pub struct Schedule {
    /// Due time and number of each source in one word, if there are no more than [`FEW`]: the smallest word
    /// is the first source. The second half is used if there are more than [`HALF`].
    few: [u64; FEW],
    uses_both_halves: bool,
    tree: Tree,
}

/// The sources if there are more than [`FEW`].
enum Tree {
    None,
    /// The number takes so many bits of a word. At least 50 remain for the time: 13 days.
    Narrow(Levels<u64>, u32),
    Wide(Levels<u128>),
}

/// Bits of a number in a narrow word, at most.
const NARROW_BITS: u32 = 14;

/// Blocks of words, each of which stands for one source or for the least of a block below. Entry `e` of
/// block `b` stands for block `8b + 1 + e`; the last level has one word for each source.
struct Levels<W> {
    blocks: Box<[Block<W>]>,
    /// The first block of the last level.
    leaves: usize,
    first: W,
}

const FANOUT: usize = 8;

#[derive(Clone, Copy)]
#[repr(align(64))]
struct Block<W>([W; FANOUT]);

impl<W: Copy + Ord> Levels<W> {
    /// For `sources` sources, all of which are `never`.
    fn new(sources: usize, never: W) -> Self {
        let used = sources.div_ceil(FANOUT);
        let (mut leaves, mut level) = (0, 1);
        while level < used {
            leaves += level;
            level *= FANOUT;
        }
        Self { blocks: vec![Block([never; FANOUT]); leaves + used].into(), leaves, first: never }
    }

    fn set(&mut self, source: usize, word: W) {
        let (mut block, mut entry) = (self.leaves + source / FANOUT, source % FANOUT);
        let mut word = word;
        loop {
            let Block(words) = &mut self.blocks[block];
            if words[entry] == word {
                return;
            }
            words[entry] = word;
            let [a, b, c, d, e, f, g, h] = *words;
            word = a.min(b).min(c.min(d)).min(e.min(f).min(g.min(h)));
            if block == 0 {
                self.first = word;
                return;
            }
            (block, entry) = ((block - 1) / FANOUT, (block - 1) % FANOUT);
        }
    }
}

impl Schedule {
    /// `sources` sources, none due.
    pub fn new(sources: usize) -> Self {
        let bits = usize::BITS - sources.leading_zeros();
        let tree = match bits {
            _ if sources <= FEW => Tree::None,
            ..=NARROW_BITS => Tree::Narrow(Levels::new(sources, u64::MAX), bits),
            _ => Tree::Wide(Levels::new(sources, u128::MAX)),
        };
        Self { few: [u64::MAX; FEW], uses_both_halves: sources > HALF, tree }
    }

    /// Source `source` is next due at `due_ns` ([`NEVER`]: it is not).
    #[inline(always)]
    pub fn set(&mut self, source: usize, due_ns: u64) {
        if let Tree::None = self.tree {
            self.few[source] = (due_ns.min(LATEST) << FEW_BITS) | source as u64;
        } else {
            self.set_leaf(source, due_ns);
        }
    }

    #[inline(never)]
    fn set_leaf(&mut self, source: usize, due_ns: u64) {
        match &mut self.tree {
            Tree::None => {}
            Tree::Narrow(levels, bits) => {
                levels.set(source, (due_ns.min(u64::MAX >> *bits) << *bits) | source as u64);
            }
            Tree::Wide(levels) => {
                levels.set(source, (u128::from(due_ns) << u64::BITS) | source as u128);
            }
        }
    }

    /// The first source and when it is due; any source if none is.
    #[inline]
    pub fn first(&self) -> (usize, u64) {
        let (first, bits) = match &self.tree {
            Tree::None => (self.least(), FEW_BITS),
            Tree::Narrow(levels, bits) => (levels.first, *bits),
            Tree::Wide(levels) => {
                return (levels.first as u32 as usize, (levels.first >> u64::BITS) as u64);
            }
        };
        let (source, due_ns) = (first & !(u64::MAX << bits), first >> bits);
        (source as usize, if due_ns == u64::MAX >> bits { NEVER } else { due_ns })
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
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn gives_the_earliest_then_the_lowest(
            n in prop_oneof![1usize..40, 500usize..530, 16_000usize..17_000],
            changes in prop::collection::vec((any::<usize>(), prop_oneof![0u64..8, Just(NEVER)]), 1..200),
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
