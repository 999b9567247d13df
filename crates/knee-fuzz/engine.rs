//! The targets for libFuzzer, which has the `main`: `scripts/fuzz.sh`. KNEE_FUZZ_TARGET names the target.

#![no_main]

use std::{env, sync::LazyLock};

static TARGET: LazyLock<&knee_fuzz::Target> = LazyLock::new(|| {
    let name = env::var("KNEE_FUZZ_TARGET").unwrap_or_default();
    knee_fuzz::target(&name).unwrap_or_else(|| panic!("KNEE_FUZZ_TARGET={name}: no such target"))
});

/// The function that libFuzzer calls for each input.
#[unsafe(no_mangle)]
pub extern "C" fn LLVMFuzzerTestOneInput(bytes: *const u8, n: usize) -> i32 {
    // A panic must reach libFuzzer as a crash: one that leaves this function aborts.
    // SAFETY: libFuzzer gives `n` bytes that outlive the call; of none the pointer may be null.
    let input = if n == 0 { &[] } else { unsafe { std::slice::from_raw_parts(bytes, n) } };
    (TARGET.run)(input);
    0
}
