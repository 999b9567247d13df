//! Exports of the module: one session, and memory to pass requests and answers through.
//!
//! The page allocates, writes a request, calls [`knee_answer`], and reads text and numbers at the
//! addresses that the other functions give. They hold until the next request.

use crate::{Answer, Session};
use std::cell::RefCell;

thread_local! {
    static SESSION: RefCell<Session> = RefCell::new(Session::default());
    static REQUEST: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
    static ANSWER: RefCell<Answer> = RefCell::new(Answer::default());
}

#[link(wasm_import_module = "env")]
unsafe extern "C" {
    /// Tells the page how much of a run is simulated, from 0 to 1.
    fn progress(fraction: f64);
    /// Tells the page why the module stops, UTF-8.
    fn panicked(text: *const u8, bytes: usize);
}

/// Gives the address of `bytes` bytes for the next request.
#[unsafe(no_mangle)]
pub extern "C" fn knee_request(bytes: usize) -> *mut u8 {
    std::panic::set_hook(Box::new(|info| {
        let text = info.to_string();
        // SAFETY: the page reads the text before it returns.
        unsafe { panicked(text.as_ptr(), text.len()) }
    }));
    REQUEST.with_borrow_mut(|request| {
        request.clear();
        request.resize(bytes, 0);
        request.as_mut_ptr()
    })
}

/// Answers the request that was written.
#[unsafe(no_mangle)]
pub extern "C" fn knee_answer() {
    let request = REQUEST.take();
    // SAFETY: the page's function only posts a message.
    let mut watch = |fraction| unsafe { progress(fraction) };
    let answer = SESSION.with_borrow_mut(|session| session.answer(&request, &mut watch));
    ANSWER.set(answer);
}

/// Address of the answer's JSON.
#[unsafe(no_mangle)]
pub extern "C" fn knee_text() -> *const u8 {
    ANSWER.with_borrow(|answer| answer.text.as_ptr())
}

/// Its length, bytes.
#[unsafe(no_mangle)]
pub extern "C" fn knee_text_bytes() -> usize {
    ANSWER.with_borrow(|answer| answer.text.len())
}

/// Address of the answer's numbers.
#[unsafe(no_mangle)]
pub extern "C" fn knee_numbers() -> *const f64 {
    ANSWER.with_borrow(|answer| answer.numbers.as_ptr())
}

/// Number of them.
#[unsafe(no_mangle)]
pub extern "C" fn knee_numbers_count() -> usize {
    ANSWER.with_borrow(|answer| answer.numbers.len())
}
