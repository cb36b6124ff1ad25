//! A table that follows the records while they arrive.

use std::env;
use std::io::{self, BufWriter, IsTerminal, Write};
use std::time::Instant;

use hopline_report::{Error, LINE_S, Options, Outcome, View, ViewLeg, WINDOW_S, interrupted};
use ratatui::backend::TermionBackend;
use ratatui::layout::{Constraint, Layout};
use ratatui::style::{Color, Style, Stylize};
use ratatui::symbols::bar;
use ratatui::termion::screen::IntoAlternateScreen;
use ratatui::text::{Line, Span};
use ratatui::widgets::{Cell, Paragraph, Row, Table};
use ratatui::{Frame, Terminal};

/// Shows the table until the input ends or Ctrl-C is pressed, then prints the report.
pub(crate) fn run(options: &Options) -> Result<Outcome, Error> {
    if !io::stdout().is_terminal() {
        let _ = writeln!(
            io::stderr(),
            "hopline-report: --watch needs a terminal as standard output; leave it out"
        );
        return Ok(Outcome::Unread);
    }
    let is_over = interrupted()?;
    let colours = has_colours(env::var_os("NO_COLOR").as_deref());
    let watched = {
        let screen = io::stdout().into_alternate_screen().map_err(Error::Write)?;
        let mut terminal =
            Terminal::new(TermionBackend::new(BufWriter::new(screen))).map_err(Error::Write)?;
        let begin = Instant::now();
        hopline_report::watch(
            options,
            &is_over,
            || begin.elapsed(),
            |view| terminal.draw(|frame| draw(view, colours, frame)).map(drop),
        )?
        // The screen and the cursor come back here.
    };
    let mut out = BufWriter::new(io::stdout().lock());
    let outcome = watched.finish(&mut out, io::stderr())?;
    out.flush().map_err(Error::Write)?;
    Ok(outcome)
}

/// <https://no-color.org>: any value but an empty one turns colours off.
fn has_colours(no_color: Option<&std::ffi::OsStr>) -> bool {
    no_color.is_none_or(std::ffi::OsStr::is_empty)
}

fn draw(view: &View, colours: bool, frame: &mut Frame<'_>) {
    let causes = u16::from(!view.causes.is_empty());
    let [head, table, late, foot] = Layout::vertical([
        Constraint::Length(2),
        Constraint::Min(1),
        Constraint::Length(causes * 2),
        Constraint::Length(1),
    ])
    .areas(frame.area());
    frame.render_widget(Paragraph::new(heading(view)), head);
    frame.render_widget(legs(view, colours), table);
    if causes > 0 {
        frame.render_widget(Paragraph::new(why_late(view, colours)), late);
    }
    let keys = Line::from("Ctrl-C ends this and prints the report").dim();
    frame.render_widget(Paragraph::new(keys), foot);
}

fn heading(view: &View) -> String {
    let View { second, messages, malformed, .. } = view;
    let odd = match malformed {
        0 => String::new(),
        n => format!(", {n} malformed lines"),
    };
    format!("{messages} messages in {second} s{odd}; figures of the last {WINDOW_S} s")
}

fn legs(view: &View, colours: bool) -> Table<'_> {
    let head = ["", "msg/s", "p50", "p90", "p99", "max", "p99 of each second"];
    let head = Row::new(head.map(Cell::from)).style(Style::new().bold());
    let widths = [
        Constraint::Fill(1),
        Constraint::Length(9),
        Constraint::Length(8),
        Constraint::Length(8),
        Constraint::Length(8),
        Constraint::Length(8),
        Constraint::Max(LINE_S as u16),
    ];
    Table::new(view.legs.iter().map(|leg| row(leg, colours)), widths).header(head).column_spacing(1)
}

fn row(leg: &ViewLeg, colours: bool) -> Row<'_> {
    let rate = leg.messages.checked_div(leg.seconds).unwrap_or(0).to_string();
    let figures = [rate].into_iter().chain(leg.delays.iter().cloned());
    let figures = figures.map(|text| Cell::from(Line::from(text).right_aligned()));
    let line = Span::from(sparkline(&leg.line));
    let line = if colours { line.fg(Color::Cyan) } else { line };
    Row::new([Cell::from(leg.name.as_str())].into_iter().chain(figures).chain([line.into()]))
}

/// Blocks of eight heights, the greatest value the highest; blank where there is none.
fn sparkline(values: &[u64]) -> String {
    let bars = [
        " ",
        bar::ONE_EIGHTH,
        bar::ONE_QUARTER,
        bar::THREE_EIGHTHS,
        bar::HALF,
        bar::FIVE_EIGHTHS,
        bar::THREE_QUARTERS,
        bar::SEVEN_EIGHTHS,
        bar::FULL,
    ];
    let most = values.iter().copied().max().unwrap_or(0).max(1);
    let height = |value: u64| (u128::from(value) * 8).div_ceil(u128::from(most)) as usize;
    values.iter().filter_map(|value| bars.get(height(*value))).copied().collect()
}

fn why_late(view: &View, colours: bool) -> Line<'static> {
    let mut spans = vec![Span::from("late because of  ")];
    for (cause, count) in &view.causes {
        let cause = Span::from(*cause);
        spans.push(if colours { cause.fg(Color::Yellow) } else { cause });
        spans.push(Span::from(format!(" {count}  ")));
    }
    Line::from(spans)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ratatui::backend::TestBackend;
    use std::ffi::OsStr;

    fn view() -> View {
        let leg = ViewLeg {
            name: "hop pub -> q".into(),
            messages: 5_000,
            seconds: 10,
            delays: ["1 us", "20.0 us", "3.00 ms", "41.0 ms"].map(String::from),
            line: (0..LINE_S as u64).collect(),
        };
        let causes = vec![("nagle", 12), ("wire", 1)];
        View { second: 61, messages: 30_000, malformed: 2, legs: vec![leg], causes }
    }

    fn screen(view: &View, colours: bool, (width, height): (u16, u16)) -> (String, bool) {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
        terminal.draw(|frame| draw(view, colours, frame)).unwrap();
        let cells = terminal.backend().buffer().content();
        let has_colour = cells.iter().any(|cell| cell.fg != Color::Reset);
        (terminal.backend().to_string(), has_colour)
    }

    #[test]
    fn the_table_shows_figures_line_and_causes() {
        let (text, has_colour) = screen(&view(), true, (120, 10));
        for part in [
            "30000 messages in 61 s, 2 malformed lines; figures of the last 10 s",
            "hop pub -> q",
            "500     1 us  20.0 us  3.00 ms  41.0 ms",
            "late because of  nagle 12  wire 1",
            "Ctrl-C ends this",
            "█",
        ] {
            assert!(text.contains(part), "no {part:?} in\n{text}");
        }
        assert!(has_colour);
        assert!(!screen(&view(), false, (120, 10)).1);
    }

    #[test]
    fn small_screens_and_empty_views_are_drawn_too() {
        for size in [(1, 1), (20, 3), (40, 5), (200, 60)] {
            screen(&view(), true, size);
            screen(&View::default(), false, size);
        }
    }

    #[test]
    fn the_line_of_blocks_spans_their_heights() {
        assert_eq!(sparkline(&[0, 1, 4, 8]), " ▁▄█");
        assert_eq!(sparkline(&[0, 0]), "  ");
        assert_eq!(sparkline(&[u64::MAX, 1]), "█▁");
        assert_eq!(sparkline(&[]), "");
    }

    #[test]
    fn no_color_is_honoured_unless_it_is_empty() {
        assert!(has_colours(None) && has_colours(Some(OsStr::new(""))));
        assert!(!has_colours(Some(OsStr::new("1"))));
    }
}
