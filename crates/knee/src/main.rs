//! The program `knee`.

use std::process::ExitCode;

fn main() -> ExitCode {
    ExitCode::from(knee::main(std::env::args_os()))
}
