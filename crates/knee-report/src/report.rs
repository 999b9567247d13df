//! A report: one HTML file that needs no network and prints well.

use crate::{
    chart::Chart,
    drawing::Drawing,
    palette::palette_css,
    table::{Table, Tone},
};
use maud::{DOCTYPE, Markup, PreEscaped, html};

/// The script of the charts, and its scales.
const SCRIPT: [&str; 2] = [include_str!("../assets/scale.js"), include_str!("../assets/report.js")];
const REPORT_CSS: &str = include_str!("../assets/report.css");

/// A report. All text is plain text, never markup.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// Subject of the report.
    pub title: String,
    /// One or two sentences under the title; may be empty.
    pub subtitle: String,
    /// Facts of how it came about, by name.
    pub meta: Vec<(String, String)>,
    /// Sections, in order.
    pub sections: Vec<Section>,
}

/// A section: paragraphs, then tables, drawings, charts and listings.
#[derive(Clone, Debug, Default)]
pub struct Section {
    /// Heading.
    pub heading: String,
    /// Text.
    pub paragraphs: Vec<String>,
    /// Tables.
    pub tables: Vec<Table>,
    /// Drawings. Their ids must be unique among the report's drawings.
    pub drawings: Vec<Drawing>,
    /// Charts. Their ids must be unique in the report.
    pub charts: Vec<Chart>,
    /// Preformatted text, folded away: caption and text.
    pub listings: Vec<(String, String)>,
}

impl Section {
    /// A section with a heading and nothing under it.
    pub fn new(heading: impl Into<String>) -> Self {
        Self { heading: heading.into(), ..Self::default() }
    }
}

impl Report {
    /// The report as an HTML document.
    pub fn html(&self) -> String {
        let charts = || self.sections.iter().flat_map(|s| &s.charts);
        let data = serde_json::Value::from_iter(charts().map(Chart::json));
        // `<` could end the element that holds the data.
        let data = data.to_string().replace('<', "\\u003c");
        let page = html! {
            (DOCTYPE)
            html lang="en" {
                head {
                    meta charset="utf-8";
                    meta name="viewport" content="width=device-width, initial-scale=1";
                    meta name="color-scheme" content="light dark";
                    meta http-equiv="Content-Security-Policy"
                        content="default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'";
                    title { (self.title) }
                    style { (PreEscaped(REPORT_CSS)) (PreEscaped(palette_css())) }
                }
                body {
                    header {
                        h1 { (self.title) }
                        @if !self.subtitle.is_empty() { p.subtitle { (self.subtitle) } }
                        @if !self.meta.is_empty() {
                            dl { @for (name, value) in &self.meta { div { dt { (name) } dd { (value) } } } }
                        }
                    }
                    nav aria-label="Contents" {
                        ol {
                            @for (i, section) in self.sections.iter().enumerate() {
                                li { a href={ "#section-" (i + 1) } { (section.heading) } }
                            }
                        }
                    }
                    main {
                        @for (i, section) in self.sections.iter().enumerate() {
                            section id={ "section-" (i + 1) } { (section.markup()) }
                        }
                    }
                    footer { "Made by Knee." }
                    script type="application/json" id="charts" { (PreEscaped(data)) }
                    script type="module" { @for text in SCRIPT { (PreEscaped(text)) } }
                }
            }
        };
        page.into_string()
    }
}

impl Section {
    fn markup(&self) -> Markup {
        html! {
            h2 { (self.heading) }
            @for text in &self.paragraphs { p { (text) } }
            @for table in &self.tables { (table_markup(table)) }
            @for drawing in &self.drawings { (drawing_markup(drawing)) }
            @for chart in &self.charts { (chart_markup(chart)) }
            @for (caption, text) in &self.listings {
                details { summary { (caption) } pre { (text) } }
            }
        }
    }
}

fn table_markup(table: &Table) -> Markup {
    let class = |numeric| if numeric { Some("number") } else { None };
    html! {
        div.table {
            table {
                @if !table.caption.is_empty() { caption { (table.caption) } }
                thead {
                    tr {
                        @for column in &table.columns {
                            th scope="col" class=[class(column.numeric)] { (column.head) }
                        }
                    }
                }
                tbody {
                    @for row in &table.rows {
                        tr {
                            @for (cell, column) in row.iter().zip(&table.columns) {
                                td class=[class(column.numeric)] {
                                    @match cell.tone {
                                        Some(tone) => span class={ "tone " (tone_class(tone)) } { (cell.text) },
                                        None => (cell.text),
                                    }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn tone_class(tone: Tone) -> &'static str {
    match tone {
        Tone::Good => "good",
        Tone::Bad => "bad",
        Tone::Caution => "caution",
    }
}

fn chart_markup(chart: &Chart) -> Markup {
    let caption = chart.full_caption();
    html! {
        figure id={ "chart-" (chart.id) } {
            h3 { (chart.title) }
            div.chart { (PreEscaped(chart.page_svg())) }
            @if !caption.is_empty() { figcaption { (caption) } }
        }
    }
}

fn drawing_markup(drawing: &Drawing) -> Markup {
    html! {
        figure id={ "drawing-" (drawing.id) } {
            h3 { (drawing.title) }
            div.drawing { (PreEscaped(&drawing.svg)) }
            @if !drawing.caption.is_empty() { figcaption { (drawing.caption) } }
            details { summary { "In numbers" } (table_markup(&drawing.table)) }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        chart::{Series, Style},
        table::Cell,
    };

    const HOSTILE: &str = "</script><script>alert(\"1\")</script>&<b>";

    fn report() -> Report {
        let mut chart = Chart::new("q", HOSTILE, HOSTILE, HOSTILE);
        chart.caption = HOSTILE.to_owned();
        chart.series.push(Series::new(HOSTILE, Style::Line, [(0.0, 1.0), (1.0, 2.0)]));
        chart.series.push(Series::new("other", Style::Marks, [(0.0, 2.0), (1.0, 1.0)]));
        let mut table = Table::new(HOSTILE, &[HOSTILE], &["n"]);
        table.row([Cell::from(HOSTILE), Cell::toned(HOSTILE, Tone::Bad)]);
        let section = Section {
            paragraphs: vec![HOSTILE.to_owned()],
            tables: vec![table],
            charts: vec![chart],
            listings: vec![(HOSTILE.to_owned(), HOSTILE.to_owned())],
            ..Section::new(HOSTILE)
        };
        Report {
            title: HOSTILE.to_owned(),
            subtitle: HOSTILE.to_owned(),
            meta: vec![(HOSTILE.to_owned(), HOSTILE.to_owned())],
            sections: vec![section],
        }
    }

    #[test]
    fn text_is_never_markup() {
        let html = report().html();
        assert!(!html.contains("<script>alert") && !html.contains("&<b>"));
        // The data, and the charts; nothing else.
        assert_eq!(html.matches("<script").count(), 2);
        assert_eq!(html.matches("</script").count(), 2);
        assert!(html.contains("\\u003c/script>"), "the data is escaped");
    }

    #[test]
    fn nothing_is_loaded() {
        let html = report().html();
        for load in [" src=", "href=\"http", "@import", "url(http", "<link"] {
            assert!(!html.contains(load), "{load}");
        }
        assert!(html.contains("default-src 'none'"));
    }

    #[test]
    fn the_data_is_valid_json() {
        let html = report().html();
        let (_, rest) = html.split_once("id=\"charts\">").unwrap();
        let (data, _) = rest.split_once("</script>").unwrap();
        let data: serde_json::Value = serde_json::from_str(data).unwrap();
        assert_eq!(data[0]["series"][0]["name"], HOSTILE);
    }
}
