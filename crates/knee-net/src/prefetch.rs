//! Memory that is asked for before it is needed: with thousands of flows it is not in the cache.

/// Asks for the memory of what `value` points to. Nothing is read: it may point anywhere.
#[inline]
pub fn prefetch<T>(value: *const T) {
    #[cfg(target_arch = "x86_64")]
    for line in (0..size_of::<T>()).step_by(64) {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        let at = value.cast::<i8>().wrapping_add(line);
        // SAFETY: a prefetch accepts any address and has no effect that a program can see.
        unsafe { _mm_prefetch(at, _MM_HINT_T0) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = value;
}
