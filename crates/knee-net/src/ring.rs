//! A growing queue of small records.

/// A ring of fewer records than this is short: it grows by an eighth, a longer one by a sixteenth.
const SHORT: usize = 1 << 16;

/// First in, first out, in one block of memory that grows by a sixteenth (a short one by an eighth): leaner
/// than the standard library's deque, which doubles, and somewhat faster, since it does less.
#[derive(Clone, Debug, Default)]
pub struct Ring<T> {
    slots: Box<[T]>,
    /// Place of the first record, and of the next one.
    head: usize,
    tail: usize,
    len: usize,
}

impl<T: Default> Ring<T> {
    /// Number of records.
    #[inline]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns whether the ring holds no records.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    #[inline]
    fn place(&self, index: usize) -> usize {
        let place = self.head + index;
        if place >= self.slots.len() { place - self.slots.len() } else { place }
    }

    /// The place after `place`.
    #[inline(always)]
    fn after(&self, place: usize) -> usize {
        if place + 1 == self.slots.len() { 0 } else { place + 1 }
    }

    /// Appends a record.
    #[inline(always)]
    pub fn push_back(&mut self, record: T) {
        if self.len == self.slots.len() {
            self.grow();
        }
        let place = self.tail;
        self.tail = self.after(place);
        self.len += 1;
        self.slots[place] = record;
    }

    #[cold]
    #[inline(never)]
    fn grow(&mut self) {
        let mut slots = std::mem::take(&mut self.slots).into_vec();
        slots.rotate_left(self.head);
        (self.head, self.tail) = (0, slots.len());
        // Each step moves all records, so it pays to make few of them while there are few.
        let part = if slots.len() < SHORT { 8 } else { 16 };
        let more = (slots.len() / part).max(8);
        slots.reserve_exact(more);
        slots.resize_with(slots.len() + more, T::default);
        self.slots = slots.into_boxed_slice();
    }

    /// Takes the first record.
    #[inline]
    pub fn pop_front(&mut self) -> Option<T> {
        if self.len == 0 {
            return None;
        }
        let first = std::mem::take(&mut self.slots[self.head]);
        self.head = self.after(self.head);
        self.len -= 1;
        Some(first)
    }

    /// Takes the first record; cheaper than [`Self::pop_front`].
    #[inline]
    pub fn take_front(&mut self) -> Option<T>
    where
        T: Copy,
    {
        if self.len == 0 {
            return None;
        }
        let first = self.slots[self.head];
        self.head = self.after(self.head);
        self.len -= 1;
        Some(first)
    }

    /// Takes the record `index` places after the first, and discards those before it; does nothing if there
    /// is none.
    #[inline(always)]
    pub fn take_up_to(&mut self, index: usize) -> Option<T>
    where
        T: Copy,
    {
        if index >= self.len {
            return None;
        }
        let place = self.place(index);
        let record = self.slots[place];
        self.head = self.after(place);
        self.len -= index + 1;
        Some(record)
    }

    /// The record `index` places after the first.
    #[inline]
    pub fn get(&self, index: usize) -> Option<&T> {
        if index < self.len { self.slots.get(self.place(index)) } else { None }
    }

    /// The record `index` places after the first.
    #[inline]
    pub fn get_mut(&mut self, index: usize) -> Option<&mut T> {
        let place = self.place(index);
        if index < self.len { self.slots.get_mut(place) } else { None }
    }

    /// The first record.
    #[inline]
    pub fn front(&self) -> Option<&T> {
        if self.len == 0 { None } else { self.slots.get(self.head) }
    }

    /// All records, in order.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        let split = self.slots.len() - self.head;
        let (wrapped, first) = self.slots.split_at_mut(self.head);
        let rest = self.len.saturating_sub(split);
        first.iter_mut().take(self.len).chain(wrapped.iter_mut().take(rest))
    }

    /// All records, in order.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        (0..self.len).map(|i| &self.slots[self.place(i)])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::VecDeque;

    proptest! {
        #[test]
        fn is_a_queue(steps in prop::collection::vec(prop::option::weighted(0.6, any::<u32>()), 1..400)) {
            let (mut ring, mut model) = (Ring::default(), VecDeque::new());
            for step in steps {
                match step {
                    Some(record) => {
                        ring.push_back(record);
                        model.push_back(record);
                    }
                    None if model.len() % 3 == 0 => prop_assert_eq!(ring.pop_front(), model.pop_front()),
                    None if model.len() % 3 == 1 => prop_assert_eq!(ring.take_front(), model.pop_front()),
                    None => {
                        let index = model.len() % 4;
                        let taken = model.get(index).copied();
                        prop_assert_eq!(ring.take_up_to(index), taken);
                        taken.inspect(|_| _ = model.drain(..=index));
                    }
                }
                prop_assert_eq!(ring.len(), model.len());
                prop_assert_eq!(ring.is_empty(), model.is_empty());
                prop_assert!(ring.iter().eq(model.iter()));
                prop_assert!(ring.iter_mut().eq(model.iter_mut()));
                for i in 0..model.len() + 2 {
                    prop_assert_eq!(ring.get(i), model.get(i));
                    prop_assert_eq!(ring.get_mut(i), model.get_mut(i));
                }
                prop_assert_eq!(ring.front(), model.front());
            }
        }
    }
}
