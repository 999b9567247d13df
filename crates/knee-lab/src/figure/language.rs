//! The language of formulas, without the functions that `formula.rs` adds.

use rhai::Engine;

/// An engine within bounds: a formula that never ends is an error.
pub(super) fn engine() -> Engine {
    let mut engine = Engine::new();
    engine.set_max_operations(10_000_000).set_max_expr_depths(64, 64);
    engine
}

/// Checks that `formula` can be read.
pub(crate) fn check(formula: &str) -> Result<(), String> {
    engine().compile(formula).map(|_| ()).map_err(|e| e.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_syntax_error_is_reported() {
        assert_eq!(check("goodput(run(#{flow: 1}), 0, 10, 20) / 2"), Ok(()));
        let error = check("goodput(run(#{flow: 1}), 0, 10, 20").expect_err("no end");
        assert!(error.contains("line 1"), "{error}");
    }
}
