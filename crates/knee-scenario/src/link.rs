//! Keys of `[path]` other than a constant rate, a constant delay and independent losses.

use super::error::Fault;
use super::files::Files;
use super::section::Section;
use knee_model::{BurstLoss, Ns, PathSpec, Reorder, ReverseLink, Varying};

/// The rate of a link whose keys begin with `prefix`: at the start, and its changes.
pub(super) fn rate(
    section: &Section,
    prefix: &str,
    files: &Files,
) -> Result<Option<(u64, Option<Varying>)>, Fault> {
    let [rate, rate_trace, rate_steps] =
        ["rate", "rate_trace", "rate_steps"].map(|key| format!("{prefix}{key}"));
    let steps = section.rate_steps(&rate_steps)?;
    let Some(trace) = files.trace(section, &rate_trace)? else {
        let bps = section.rate(&rate)?;
        if bps.is_none() && section.has(&rate_steps) {
            let remedy = format!("write `{rate}` too: it holds until the first step");
            return Err(section.fault(&rate_steps, ": there is no rate to begin with", remedy));
        }
        let varies = (!steps.is_empty()).then_some(Varying::Steps(steps));
        return Ok(bps.map(|bps| (bps, varies)));
    };
    for other in [rate, rate_steps] {
        if section.has(&other) {
            return Err(section.conflict(
                &rate_trace,
                &other,
                "the rate",
                &format!(": `{other}` is there too, and both say how fast the link is"),
                "keep one of them",
            ));
        }
    }
    Ok(Some((trace.mean_bps(), Some(Varying::Trace(trace)))))
}

/// Changes of the delays, forward and reverse. `split` says how an RTT is divided.
pub(super) fn delay_steps(
    section: &Section,
    split: impl Fn(Ns) -> (Ns, Ns),
) -> Result<[Vec<(Ns, Ns)>; 2], Fault> {
    let rtt = section.delay_steps("rtt_steps")?;
    let one_way = ["delay_forward_steps", "delay_reverse_steps"];
    let [forward, reverse] = [section.delay_steps(one_way[0])?, section.delay_steps(one_way[1])?];
    if !section.has("rtt_steps") {
        return Ok([forward, reverse]);
    }
    if !section.has("rtt") {
        let remedy = "write `delay_forward_steps` and `delay_reverse_steps` with the delays";
        return Err(section.fault("rtt_steps", ": there is no rtt to begin with", remedy));
    }
    if let Some(other) = one_way.into_iter().find(|key| section.has(key)) {
        return Err(section.conflict(
            "rtt_steps",
            other,
            "the delay",
            &format!(": `{other}` is there too, and both say how long the path becomes"),
            "keep `rtt_steps`, which are split evenly, or the steps of the two ways",
        ));
    }
    let halves = rtt.into_iter().map(|(at_ns, rtt_ns)| {
        let (forward_ns, reverse_ns) = split(rtt_ns);
        ((at_ns, forward_ns), (at_ns, reverse_ns))
    });
    let (forward, reverse) = halves.unzip();
    Ok([forward, reverse])
}

/// Refuses a path on which a packet could meet no delay in either direction.
pub(super) fn always_some_delay(section: &Section, path: &PathSpec) -> Result<(), Fault> {
    if path.rtt_range_ns().0 > 0 {
        return Ok(());
    }
    let keys = ["rtt_steps", "delay_forward_steps", "delay_reverse_steps"];
    let key = keys.into_iter().find(|key| section.has(key)).unwrap_or("rtt");
    let what =
        ": both delays would be 0, one after the other or at once, and a packet may meet both";
    Err(section.fault(key, what, "make one of the two ways longer than 0"))
}

/// Losses in bursts, by the table `key`; `independent` is the key for losses that are not.
pub(super) fn bursts(
    section: &Section,
    key: &str,
    independent: &str,
) -> Result<Option<BurstLoss>, Fault> {
    let Some(table) = section.section(key)? else { return Ok(None) };
    if section.has(independent) {
        return Err(section.conflict(
            key,
            independent,
            "the other losses",
            &format!(": `{independent}` is there too, and both define the losses"),
            format!("keep one of them; `loss_good` in `{key}` is independent loss outside bursts"),
        ));
    }
    const MEANS: [&str; 2] = ["loss", "burst"];
    const MODEL: [&str; 4] = ["good_to_bad", "bad_to_good", "loss_good", "loss_bad"];
    table.only(None)?;
    if let Some(mean) = MEANS.into_iter().find(|key| table.has(key)) {
        if let Some(model) = MODEL.into_iter().find(|key| table.has(key)) {
            return Err(table.conflict(
                mean,
                model,
                "the model",
                &format!(": `{model}` is there too, and both say how packets are lost"),
                "write `loss` and `burst`, or the four probabilities of the model",
            ));
        }
        let loss = table.required("loss", table.number("loss")?, "loss = 0.01 with burst")?;
        let burst = table.required("burst", table.number("burst")?, "burst = 4 with loss")?;
        return BurstLoss::of_means(loss, burst).map(Some).ok_or_else(|| {
            // good_to_bad = loss / (burst * (1 - loss)) is at most 1.
            let least = loss / (1.0 - loss);
            let what = format!(" = {burst} is too short for so much loss");
            table.conflict("burst", "loss", "the loss", &what, format!("write at least {least}"))
        });
    }
    let good_to_bad = table.number("good_to_bad")?;
    let bad_to_good = table.number("bad_to_good")?;
    Ok(Some(BurstLoss {
        good_to_bad: table.required(
            "good_to_bad",
            good_to_bad,
            "good_to_bad = 0.003 (or `loss` and `burst`)",
        )?,
        bad_to_good: table.required("bad_to_good", bad_to_good, "bad_to_good = 0.3")?,
        loss_good: table.number("loss_good")?.unwrap_or(0.0),
        loss_bad: table.number("loss_bad")?.unwrap_or(1.0),
    }))
}

/// Packets that others overtake.
pub(super) fn reorder(section: &Section) -> Result<Option<Reorder>, Fault> {
    let Some(table) = section.section("reorder")? else { return Ok(None) };
    table.only(None)?;
    let probability = table.number("probability")?;
    let delay = table.time("delay")?;
    Ok(Some(Reorder {
        probability: table.required("probability", probability, "probability = 0.01")?,
        extra_delay_ns: table.required("delay", delay, "delay = \"5ms\"")?,
    }))
}

/// The link of the reverse direction.
pub(super) fn reverse(section: &Section, files: &Files) -> Result<Option<ReverseLink>, Fault> {
    let queue = section.queue("reverse_queue")?;
    let Some((rate_bps, rate_varies)) = rate(section, "reverse_", files)? else {
        if section.has("reverse_queue") {
            let remedy = "write `reverse_rate` too; without it packets pass at once";
            return Err(section.fault(
                "reverse_queue",
                ": the reverse direction has no rate",
                remedy,
            ));
        }
        return Ok(None);
    };
    let queue = section.required("reverse_queue", queue, "reverse_queue = \"100p\"")?;
    Ok(Some(ReverseLink { rate_bps, rate_varies, queue }))
}
