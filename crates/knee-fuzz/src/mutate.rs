//! Small changes to inputs, for a fixed number of them in each test run. It knows no coverage: that is
//! libFuzzer's.

use rand_xoshiro::{
    SplitMix64,
    rand_core::{Rng, SeedableRng},
};

/// Numbers and words at the edges of the texts' ranges.
const WORDS: [&str; 24] = [
    "0",
    "1",
    "-1",
    "18446744073709551615",
    "18446744073709551616",
    "4294967295",
    "1e308",
    "nan",
    "inf",
    "0.0000001",
    "1ns",
    "99999999s",
    "1000gbit",
    "0bit",
    "1p",
    "0p",
    "1.5bdp",
    "[]",
    "{}",
    "\"\"",
    "true",
    "=",
    ",",
    "\u{fffd}",
];

/// Draws mutations, the same for the same seed.
pub struct Mutator {
    random: SplitMix64,
    longest_bytes: usize,
}

impl Mutator {
    /// Makes inputs of at most `longest_bytes`.
    pub fn new(seed: u64, longest_bytes: usize) -> Self {
        Self { random: SplitMix64::seed_from_u64(seed), longest_bytes }
    }

    fn below(&mut self, n: usize) -> usize {
        (self.random.next_u64() % n.max(1) as u64) as usize
    }

    /// One of `corpus` with up to four changes.
    pub fn next(&mut self, corpus: &[Vec<u8>], is_text: bool) -> Vec<u8> {
        let mut input = corpus[self.below(corpus.len())].clone();
        let other = &corpus[self.below(corpus.len())];
        for _ in 0..=self.below(4) {
            match is_text && self.below(4) > 0 {
                true => self.change_text(&mut input, other),
                false => self.change_bytes(&mut input, other),
            }
        }
        input.truncate(self.longest_bytes);
        input
    }

    fn change_bytes(&mut self, input: &mut Vec<u8>, other: &[u8]) {
        let (at, n) = (self.below(input.len()), 1 + self.below(8));
        let end = (at + n).min(input.len());
        let draw = self.random.next_u64().to_le_bytes();
        match self.below(7) {
            0 => drop(input.drain(at..end)),
            1 => drop(input.splice(at..at, draw[..n].iter().copied())),
            2 if at < end => input[at] ^= 1 << (draw[0] & 7),
            3 => input[at..end].fill([0, 0xff, 0x7f, 0x80][usize::from(draw[0] & 3)]),
            4 => input.truncate(at),
            5 => {
                let from = self.below(other.len());
                let part = &other[from..(from + 64).min(other.len())];
                drop(input.splice(at..end, part.iter().copied()));
            }
            _ => input[at..end].copy_from_slice(&draw[..end - at]),
        }
    }

    fn change_text(&mut self, input: &mut Vec<u8>, other: &[u8]) {
        // The pieces between blanks, separators and quotation marks.
        let is_break = |b: &u8| b" \n=,.:;\"[]{}".contains(b);
        let pieces = |bytes: &[u8]| -> Vec<(usize, usize)> {
            let ends = (0..bytes.len()).filter(|i| is_break(&bytes[*i])).chain([bytes.len()]);
            let mut start = 0;
            ends.map(|end| (std::mem::replace(&mut start, end + 1), end)).collect()
        };
        let (own, others) = (pieces(input), pieces(other));
        let (start, end) = own[self.below(own.len())];
        match self.below(5) {
            0 => {
                let word = WORDS[self.below(WORDS.len())];
                drop(input.splice(start..end, word.bytes()));
            }
            1 => {
                let (from, to) = others[self.below(others.len())];
                drop(input.splice(start..end, other[from..to].iter().copied()));
            }
            2 => {
                let lines: Vec<&[u8]> = other.split(|b| *b == b'\n').collect();
                let mut line = lines[self.below(lines.len())].to_vec();
                line.push(b'\n');
                let at = input[..start].iter().rposition(|b| *b == b'\n').map_or(0, |at| at + 1);
                drop(input.splice(at..at, line));
            }
            3 => {
                let at = input[..start].iter().rposition(|b| *b == b'\n').map_or(0, |at| at + 1);
                let end =
                    input[end..].iter().position(|b| *b == b'\n').map_or(input.len(), |n| end + n);
                drop(input.drain(at..end));
            }
            _ => drop(input.drain(start..end)),
        }
    }
}
