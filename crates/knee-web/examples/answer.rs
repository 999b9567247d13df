//! Answers requests natively: one JSON request a line on standard input, one line of JSON each on
//! standard output. The browser's tests compare the WebAssembly module with it.

use std::io::{BufRead, Write};

fn main() -> std::io::Result<()> {
    let mut session = knee_web::Session::default();
    let mut out = std::io::stdout().lock();
    for line in std::io::stdin().lock().lines() {
        let answer = session.answer(line?.as_bytes(), &mut |_| ());
        let bits: Vec<String> =
            answer.numbers.iter().map(|n| format!("\"{:x}\"", n.to_bits())).collect();
        writeln!(out, "{{\"answer\":{},\"numbers\":[{}]}}", answer.text, bits.join(","))?;
    }
    Ok(())
}
