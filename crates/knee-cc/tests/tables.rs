//! The parameter tables are consistent, and exact words explain each refusal.

use knee_cc::{
    Algorithm, Param, ParamError, ParamKind, Params, STATE_MAX_BYTES, algorithm, algorithms,
};
use std::{collections::BTreeSet, fs, path::Path};

fn get(name: &str) -> Algorithm {
    algorithm(name).expect("registered")
}

fn param(algorithm: &str, name: &str) -> Param {
    Params::find(get(algorithm), name).expect("a parameter")
}

fn refused(algorithm: &str, given: &[(&str, u64)]) -> (String, String) {
    let error = Params::new(get(algorithm), given.iter().copied()).expect_err("refused");
    (error.param().to_owned(), error.to_string())
}

#[test]
fn registry_holds_every_file() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../cc/algorithms");
    let files: BTreeSet<String> = fs::read_dir(folder)
        .expect("the folder of algorithms")
        .map(|entry| {
            let path = entry.expect("an entry").path();
            assert_eq!(path.extension().and_then(|e| e.to_str()), Some("c"), "{path:?}");
            path.file_stem().expect("a name").to_string_lossy().into_owned()
        })
        .collect();
    let names: Vec<_> = algorithms().iter().map(|a| a.name().to_owned()).collect();
    assert_eq!(names, files.into_iter().collect::<Vec<_>>(), "sorted, named as their files");
    assert!(algorithm("nothing").is_none());
    for a in algorithms() {
        assert_eq!(algorithm(a.name()), Some(*a));
    }
}

#[test]
fn algorithms_describe_themselves() {
    for a in algorithms() {
        let name = a.name();
        assert!(!a.summary().is_empty(), "{name}: summary");
        assert!(!a.citation().is_empty(), "{name}: citation");
        assert!((1..=STATE_MAX_BYTES).contains(&a.state_bytes()), "{name}: {}", a.state_bytes());
        let observed: Vec<_> = a.observes().into_iter().filter(|o| !o.is_empty()).collect();
        assert!(!observed.is_empty(), "{name} lets nothing be observed");
        let distinct: BTreeSet<_> = observed.iter().collect();
        assert_eq!(distinct.len(), observed.len(), "{name} names an observed value twice");
    }
}

#[test]
fn every_row_is_consistent() {
    for a in algorithms() {
        for p in a.params() {
            let row = format!("{}.{}", a.name(), p.name);
            assert!(p.min <= p.max, "{row}: range");
            assert!((p.min..=p.max).contains(&p.default), "{row}: default");
            assert!(!p.source.is_empty(), "{row}: source");
            assert!(!p.help.is_empty(), "{row}: help");
            let word = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
            assert!(!p.name.is_empty() && p.name.chars().all(word), "{row}: name");
            if p.kind == ParamKind::Choice {
                assert_eq!((p.min as usize, p.max as usize + 1), (0, p.choices().len()), "{row}");
                let distinct: BTreeSet<_> = p.choices().into_iter().collect();
                assert_eq!(distinct.len(), p.choices().len(), "{row}: choices");
            } else {
                assert!(p.choices().is_empty(), "{row}: choices");
            }
            if p.kind == ParamKind::ProbabilityPpm {
                assert!(p.max <= 1_000_000, "{row}: probability");
            }
        }
    }
}

#[test]
fn names_and_aliases_are_unique() {
    for a in algorithms() {
        let mut seen = BTreeSet::new();
        for p in a.params() {
            for name in [Some(p.name), p.alias].into_iter().flatten() {
                assert!(seen.insert(name), "{}: {name} twice", a.name());
                assert_eq!(Params::find(*a, name), Ok(p));
            }
        }
    }
}

#[test]
fn defaults_satisfy_the_rules() {
    for a in algorithms() {
        let defaults = Params::defaults(*a);
        assert_eq!(Params::new(*a, []).as_ref(), Ok(&defaults), "{}", a.name());
        assert_eq!(defaults.words().len(), a.params().len());
        // Row order is the order of the C structure; given one by one, every default is accepted.
        let given = a.params().into_iter().map(|p| (p.name, u64::from(p.default)));
        assert_eq!(Params::new(*a, given).as_ref(), Ok(&defaults), "{}", a.name());
        assert_eq!(
            a.params().iter().map(|p| p.default).collect::<Vec<_>>(),
            defaults.words(),
            "{}",
            a.name()
        );
    }
}

#[test]
fn shown_values_can_be_written() {
    for a in algorithms() {
        for p in a.params() {
            for raw in [p.min, p.default, p.max] {
                assert_eq!(p.parse(&p.show(raw)), Ok(raw.into()), "{}.{}", a.name(), p.name);
            }
        }
        let defaults = Params::defaults(*a);
        let shown = defaults.shown();
        let written = shown.iter().map(|(name, value)| (*name, value.as_str()));
        assert_eq!(defaults.clone().with_written(written), Ok(defaults));
    }
}

#[test]
fn written_values_need_their_unit() {
    let refused = |name: &str, text: &str| {
        Params::defaults(get("chd")).with_written([(name, text)]).expect_err("refused").to_string()
    };
    assert!(refused("qth", "20").contains("write \"20ms\""), "{}", refused("qth", "20"));
    assert!(refused("qth", "1.0005ms").contains("finer than a microsecond"));
    assert!(refused("qth", "11s").contains("out of range"));
    assert!(refused("pmax", "25%").contains("is not a number"));
    assert!(refused("growth", "rounds").contains("is not one of: round, ack"));
    assert!(refused("ss_limit", "2ms").contains("is not a unit of a number of packets"));
    let count = |text: &str| {
        let written = Params::defaults(get("cdg")).with_written([("smoothing", text)]);
        let value = |p: Params| p.shown().into_iter().find(|(name, _)| *name == "smoothing");
        written.map(|p| value(p).expect("a parameter").1).map_err(|e| e.to_string())
    };
    assert_eq!(count("3").as_deref(), Ok("3"));
    for text in ["2.9", "3.0", "3p", "-3", "three"] {
        let said = format!("smoothing: `{text}` is not a whole number; write one such as 8");
        assert_eq!(count(text), Err(said));
    }
    assert_eq!(count("9"), Err("smoothing = 9 is out of range: 1 to 8".to_owned()));
    let given = [("queue_threshold", "20ms"), ("ss_limit", "2"), ("use_max", "false")];
    let shown = Params::defaults(get("chd")).with_written(given).expect("valid").shown();
    for pair in [("qth", "20ms"), ("ss_limit", "2p"), ("use_max", "off")] {
        assert!(shown.contains(&(pair.0, pair.1.to_owned())), "{shown:?}");
    }
}

/// Each end of each range is accepted, one step beyond it is not.
#[test]
fn ranges_are_enforced() {
    for a in algorithms() {
        for p in a.params() {
            let takes = |raw: u64| match Params::new(*a, [(p.name, raw)]) {
                // A rule may object to an extreme with the other defaults; the range does not.
                Ok(_) | Err(ParamError::Rule { .. }) => true,
                Err(_) => false,
            };
            assert!(takes(p.min.into()) && takes(p.max.into()), "{}.{}", a.name(), p.name);
            assert!(!takes(u64::from(p.max) + 1), "{}.{} above", a.name(), p.name);
            assert!(!takes(u64::MAX), "{}.{} far above", a.name(), p.name);
            assert!(p.min == 0 || !takes(u64::from(p.min) - 1), "{}.{} below", a.name(), p.name);
        }
    }
}

#[test]
fn given_values_take_their_place() {
    let p = Params::new(get("chd"), [("queue_min", 2_000), ("qth", 20_000), ("pmax", 500_000)]);
    let shown = p.expect("FreeBSD's name for qmin").shown();
    let value = |name| {
        shown.iter().find(|(n, _)| *n == name).map(|(_, v)| v.as_str()).expect("a parameter")
    };
    assert_eq!(
        ["qmin", "qth", "pmax", "qmax", "loss_delay"].map(value),
        ["2ms", "20ms", "0.5", "0ms", "max"]
    );
}

/// Defaults that come from the papers, worked into raw units by hand.
#[test]
fn defaults_are_the_papers() {
    for (algorithm, name, raw, shown) in [
        ("hd", "qmin", 5_000, "5ms"),
        ("hd", "qth", 30_000, "30ms"),
        ("hd", "qmax", 0, "0ms"),
        ("hd", "pmax", 20_000, "0.02"),
        ("hd", "holdoff", 1, "one_round"),
        ("hd", "signal", 0, "raw"),
        ("hd", "ss_test", 1, "on"),
        ("chd", "qmin", 5_000, "5ms"),
        ("chd", "qth", 30_000, "30ms"),
        ("chd", "qmax", 0, "0ms"),
        ("chd", "pmax", 250_000, "0.25"),
        ("chd", "use_max", 1, "on"),
        ("chd", "loss_fair", 1, "on"),
        ("chd", "growth", 0, "round"),
        ("chd", "shadow_init", 0, "zero"),
        ("chd", "shadow_clear", 0, "at_backoff"),
        ("chd", "shadow_loss", 1, "halve"),
        ("chd", "loss_delay", 1, "max"),
        ("chd", "recovery_growth", 0, "hold"),
    ] {
        let p = param(algorithm, name);
        assert_eq!((p.default, p.show(p.default).as_str()), (raw, shown), "{algorithm}.{name}");
    }
}

#[test]
fn unknown_parameter() {
    assert_eq!(
        refused("newreno", &[("qmin", 1)]),
        (
            "qmin".into(),
            "newreno has no parameter `qmin`; it has: count, ss_limit, initial_ssthresh".into()
        )
    );
    assert_eq!(
        refused("hd", &[("use_max", 1)]).1,
        "hd has no parameter `use_max`; it has: count, ss_limit, delack_filter, qmin, qth, qmax, pmax, draw, preset, \
         holdoff, signal, ss_test"
    );
}

#[test]
fn value_out_of_range() {
    for (given, message) in [
        (("qth", 0), "qth = 0ms is out of range: 1us to 10s"),
        (("queue_threshold", 10_000_001), "qth = 10000001us is out of range: 1us to 10s"),
        (("pmax", 1_000_001), "pmax = 1.000001 is out of range: 0 to 1"),
        (("ss_limit", 1_000_001), "ss_limit = 1000001p is out of range: 0p to 1000000p"),
        (("holdoff", 2), "holdoff = 2 is out of range: none to one_round"),
        // Beyond 32 bits there is no unit to show it in.
        (("qmin", 1 << 32), "qmin = 4294967296 is out of range: 0ms to 10s"),
    ] {
        let (_, text) = refused("hd", &[given]);
        assert_eq!(text, message);
    }
    assert_eq!(refused("hd", &[("queue_threshold", 0)]).0, "qth");
}

#[test]
fn no_such_choice() {
    let p = param("chd", "loss_delay");
    assert_eq!((p.choice("last_round"), p.choice("max")), (Ok(0), Ok(1)));
    let error = p.choice("min").expect_err("refused");
    assert_eq!(error.to_string(), "loss_delay = \"min\" is not one of: last_round, max");
    assert_eq!(error.param(), "loss_delay");
    assert!(p.choice("").is_err());
}

#[test]
fn rules_across_fields() {
    for algorithm in ["hd", "chd"] {
        for (given, at_fault, message) in [
            (&[("qmin", 30_000)][..], "qmin", "qmin = 30ms must be less than qth = 30ms"),
            (
                &[("qmin", 40_000), ("qth", 20_500)],
                "qmin",
                "qmin = 40ms must be less than qth = 20500us",
            ),
            (&[("qmax", 30_000)], "qmax", "qmax = 30ms must be 0 or more than qth = 30ms"),
            (&[("qmax", 1)], "qmax", "qmax = 1us must be 0 or more than qth = 30ms"),
        ] {
            assert_eq!(refused(algorithm, given), (at_fault.into(), message.into()));
        }
        for accepted in [
            &[("qmin", 29_999)][..],
            &[("qmax", 30_001)],
            &[("qmax", 0)],
            &[("qmin", 0), ("qth", 1), ("qmax", 2)],
        ] {
            assert!(Params::new(get(algorithm), accepted.iter().copied()).is_ok(), "{accepted:?}");
        }
    }
}

#[test]
fn values_are_shown_as_typed() {
    let time = param("hd", "qth");
    let packets = param("hd", "ss_limit");
    let probability = param("hd", "pmax");
    let choice = param("hd", "signal");
    let count = param("illinois", "low_rounds");
    for (p, raw, shown) in [
        (time, 0, "0ms"),
        (time, 1, "1us"),
        (time, 999, "999us"),
        (time, 1_000, "1ms"),
        (time, 1_500, "1500us"),
        (time, 999_000, "999ms"),
        (time, 1_000_000, "1s"),
        (time, 1_500_000, "1500ms"),
        (time, 10_000_000, "10s"),
        (packets, 0, "0p"),
        (packets, 84, "84p"),
        (probability, 0, "0"),
        (probability, 1, "0.000001"),
        (probability, 20_000, "0.02"),
        (probability, 250_000, "0.25"),
        (probability, 1_000_000, "1"),
        (choice, 0, "raw"),
        (choice, 1, "srtt"),
        (choice, 2, "2"), // no such choice: the bare index
        (count, 0, "0"),
        (count, 200, "200"),
    ] {
        assert_eq!(p.show(raw), shown, "{} {raw}", p.name);
    }
    let units = [time, packets, probability, choice, count].map(|p| p.unit());
    assert_eq!(units, ["time", "packets", "probability", "choice", "count"]);
}

#[test]
fn aliases_are_freebsds() {
    for (name, alias) in [
        ("qmin", Some("queue_min")),
        ("qth", Some("queue_threshold")),
        ("pmax", None), // the same name there
        ("use_max", None),
        ("qmax", None),
    ] {
        assert_eq!(param("chd", name).alias, alias, "{name}");
    }
}
