"""A sweep: CHD and NewReno over loss rates, kept as a data set. A marimo notebook."""

import marimo

app = marimo.App()


@app.cell
def _():
    import tempfile

    import marimo as mo
    import polars as pl

    import knee

    return knee, mo, pl, tempfile


@app.cell
def _(mo):
    mo.md("""
    # A sweep

    What does random loss cost, and does the answer depend on the RTT? A study names a scenario, what
    varies, and how often each point is repeated. All runs are made on all cores; give `out` a folder
    that stays, and finished runs are not repeated.
    """)
    return


@app.cell
def _(knee, tempfile):
    study = {
        "scenario": knee.Scenario(
            path=knee.Path(rate="10mbit", rtt="40ms", queue="84p"),
            flows=[knee.Flow("chd", start_jitter="10ms")],
            duration="20s",
        ),
        "repeat": 3,
        "axes": {
            "flow.0.cc": ["chd", "newreno"],
            "path.rtt": ["20ms", "80ms"],
            "path.loss_forward": [0, 0.001, 0.01, 0.03],
        },
    }
    folder = tempfile.TemporaryDirectory()
    data = knee.sweep(study, out=folder.name)
    data
    return data, folder


@app.cell
def _(data, pl):
    runs = pl.DataFrame(data.runs)
    runs.group_by("algorithm", "path_rtt_ms", "path_loss_forward").agg(
        (pl.median("goodput_bps") / 1e6).alias("goodput_mbps"),
        pl.median("queueing_delay_p95_ms"),
    ).sort("path_rtt_ms", "path_loss_forward", "algorithm")
    return (runs,)


if __name__ == "__main__":
    app.run()
