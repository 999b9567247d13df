//! The program `knee`.

use std::{env, process::ExitCode};

fn main() -> ExitCode {
    // Linux opens there what runs, even if another file has its name by now.
    let itself = match cfg!(target_os = "linux") {
        true => "/proc/self/exe".into(),
        false => env::current_exe().unwrap_or_default().into_os_string(),
    };
    ExitCode::from(knee::main(vec![itself], env::args_os()))
}
