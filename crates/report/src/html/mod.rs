//! The report as one page for a browser: no script, nothing from the network.

mod chart;
mod curves;
mod tables;
mod times;
mod waterfall;

use std::fmt::{self, Write as _};
use std::io::{self, Write};

use crate::report::Report;
use crate::way::LegKind;

const STYLE: &str = include_str!("style.css");

/// How many of the slowest messages are shown.
const SLOWEST: usize = 5;

/// How many colours there are for lines and causes; then they begin anew.
const COLOURS: usize = 8;

/// Writes the page.
pub(crate) fn write(report: &Report, out: &mut impl Write) -> io::Result<()> {
    let mut page = String::new();
    // Writing to a String can't fail.
    let _ = body(report, &mut page);
    writeln!(
        out,
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n\
         <meta http-equiv=\"Content-Security-Policy\" \
         content=\"default-src 'none'; style-src 'unsafe-inline'\">\n\
         <title>Hopline report</title>\n<style>\n{STYLE}</style></head>\n\
         <body>\n{page}</body></html>"
    )
}

fn body(report: &Report, page: &mut String) -> fmt::Result {
    let counts = report.counts();
    writeln!(page, "<header><h1>Where the time went</h1>")?;
    writeln!(page, "<p>{} messages; late is over {}</p></header>", counts.messages, report.late)?;
    if counts.messages == 0 {
        return writeln!(page, "<p>No messages: nothing to measure.</p>");
    }
    tables::notes(report, page)?;
    writeln!(page, "<section><h2>Why messages were late</h2>")?;
    tables::causes(report, page)?;
    writeln!(page, "</section>\n<div class=\"charts\">")?;
    times::write(report, page)?;
    curves::write(report, page)?;
    writeln!(page, "</div>\n<section><h2>Single messages</h2>")?;
    messages(report, page)?;
    writeln!(page, "</section>\n<section><h2>Hops, stays and stages</h2>")?;
    tables::legs(report, page)?;
    writeln!(page, "</section>\n<section><h2>Settings in force</h2>")?;
    tables::settings(report, page)?;
    writeln!(page, "</section>")
}

fn messages(report: &Report, page: &mut String) -> fmt::Result {
    let whole = report.table.of(LegKind::EndToEnd).next();
    let median = whole.and_then(|row| row.delays.percentile_ns(500));
    let gallery = report.gallery.as_ref();
    if let Some(trace) = gallery.zip(median).and_then(|(all, median)| all.ordinary(median)) {
        waterfall::write(report, "An ordinary message", trace, page)?;
    }
    for (rank, trace) in (1..).zip(report.traces.exported().take(SLOWEST)) {
        waterfall::write(report, &format!("Slowest, no. {rank}"), trace, page)?;
    }
    Ok(())
}

/// Text of a peer or a file that can't become markup; control characters are shown as U+FFFD.
struct Escaped<'a>(&'a str);

impl fmt::Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.chars().try_for_each(|c| match c {
            '&' => f.write_str("&amp;"),
            '<' => f.write_str("&lt;"),
            '>' => f.write_str("&gt;"),
            '"' => f.write_str("&quot;"),
            '\'' => f.write_str("&#39;"),
            c if c.is_control() => f.write_char(char::REPLACEMENT_CHARACTER),
            c => f.write_char(c),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_can_t_become_markup() {
        let hostile = "<a href=\"x\" b='y'>&\u{1b}";
        let escaped = "&lt;a href=&quot;x&quot; b=&#39;y&#39;&gt;&amp;\u{fffd}";
        assert_eq!(Escaped(hostile).to_string(), escaped);
    }
}
