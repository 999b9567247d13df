//! Memory that is asked for before it is needed: with thousands of flows it is not in the cache.

/// Asks for the memory of `value`. It need not be there to be asked for: nothing is read.
#[inline]
pub fn prefetch<T>(value: &T) {
    #[cfg(target_arch = "x86_64")]
    for line in (0..size_of::<T>()).step_by(64) {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        let at = std::ptr::from_ref(value).cast::<i8>().wrapping_add(line);
        // SAFETY: a prefetch accepts any address and has no effect that a program can see.
        unsafe { _mm_prefetch(at, _MM_HINT_T0) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = value;
}
