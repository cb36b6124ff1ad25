//! Lines of bounded length from a file or a pipe, packed with gzip or not.

use std::fs::File;
use std::io::{self, BufRead, BufReader, ErrorKind, Read};
use std::path::Path;

use flate2::bufread::MultiGzDecoder;

use hopline_timeline::record::MAX_LINE_OCTETS;

use crate::error::Error;

const READ_OCTETS: usize = 256 << 10;
const GZIP_MAGIC: [u8; 2] = [0x1f, 0x8b];

/// The name on the command line, and in messages, of the standard input.
pub(crate) const STDIN_NAME: &str = "-";

/// One line, or why there is none.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Line<T> {
    /// A line that ended with a line feed.
    Complete(T),
    /// The last octets of the input: no line feed followed.
    Unterminated(T),
    /// Longer than [`MAX_LINE_OCTETS`]; skipped.
    TooLong,
    /// The compressed stream ended in its middle; what was left of a line is lost.
    CutOff,
}

impl<T> Line<T> {
    /// The line with another text.
    pub(crate) fn map<'a, U>(&'a self, of: impl FnOnce(&'a T) -> U) -> Line<U> {
        match self {
            Line::Complete(text) => Line::Complete(of(text)),
            Line::Unterminated(text) => Line::Unterminated(of(text)),
            Line::TooLong => Line::TooLong,
            Line::CutOff => Line::CutOff,
        }
    }
}

/// Reads lines.
pub(crate) struct Lines<'a> {
    reader: Box<dyn BufRead + 'a>,
    buffer: Vec<u8>,
    ended: bool,
}

impl<'a> Lines<'a> {
    /// Opens `path`.
    pub(crate) fn open(path: &Path) -> Result<Self, Error> {
        File::open(path)
            .and_then(Lines::new)
            .map_err(|source| Error::Open { path: path.to_owned(), source })
    }

    /// Reads from `source`, unpacking it where its first octets say that it is gzip.
    pub(crate) fn new(source: impl Read + 'a) -> io::Result<Self> {
        let mut start = Vec::with_capacity(GZIP_MAGIC.len());
        let mut source = source;
        source.by_ref().take(GZIP_MAGIC.len() as u64).read_to_end(&mut start)?;
        let packed = start == GZIP_MAGIC;
        let whole = BufReader::with_capacity(READ_OCTETS, io::Cursor::new(start).chain(source));
        let reader: Box<dyn BufRead + 'a> = if packed {
            Box::new(BufReader::with_capacity(READ_OCTETS, MultiGzDecoder::new(whole)))
        } else {
            Box::new(whole)
        };
        Ok(Self { reader, buffer: Vec::new(), ended: false })
    }

    /// The next line; `None` at the end and after an error.
    pub(crate) fn next(&mut self) -> Option<io::Result<Line<&[u8]>>> {
        if self.ended {
            return None;
        }
        self.buffer.clear();
        let room = MAX_LINE_OCTETS as u64 + 1;
        match self.reader.by_ref().take(room).read_until(b'\n', &mut self.buffer) {
            Ok(0) => self.end(),
            Ok(_) if self.buffer.ends_with(b"\n") => {
                self.buffer.pop();
                Some(Ok(Line::Complete(&self.buffer)))
            }
            Ok(octets) if octets > MAX_LINE_OCTETS => {
                Some(self.skip_rest().map(|()| Line::TooLong))
            }
            Ok(_) => {
                self.ended = true;
                Some(Ok(Line::Unterminated(&self.buffer)))
            }
            Err(error) => Some(self.fail(error)),
        }
    }

    fn skip_rest(&mut self) -> io::Result<()> {
        let skipped = self.reader.skip_until(b'\n');
        self.ended = skipped.is_err();
        skipped.map(drop)
    }

    fn end<T>(&mut self) -> Option<T> {
        self.ended = true;
        None
    }

    fn fail(&mut self, error: io::Error) -> io::Result<Line<&[u8]>> {
        self.ended = true;
        match error.kind() {
            ErrorKind::UnexpectedEof => Ok(Line::CutOff),
            _ => Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::{Compression, write::GzEncoder};
    use std::io::Write;

    fn gzip(text: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(text).unwrap();
        encoder.finish().unwrap()
    }

    fn shown(source: &[u8]) -> Vec<String> {
        let mut lines = Lines::new(source).unwrap();
        let mut shown = Vec::new();
        while let Some(line) = lines.next() {
            let line = match line {
                Ok(Line::Complete(text)) => String::from_utf8_lossy(text).into_owned(),
                Ok(Line::Unterminated(text)) => format!("{}<end>", String::from_utf8_lossy(text)),
                Ok(other) => format!("{other:?}"),
                Err(error) => format!("{:?}", error.kind()),
            };
            shown.push(format!("{} {line}", shown.len() + 1));
        }
        shown
    }

    #[test]
    fn lines_are_counted_from_one_and_the_last_may_be_unterminated() {
        assert!(shown(b"").is_empty());
        assert_eq!(shown(b"a"), ["1 a<end>"]);
        assert_eq!(shown(b"a\n\nb\n"), ["1 a", "2 ", "3 b"]);
        assert_eq!(shown(b"a\nb"), ["1 a", "2 b<end>"]);
    }

    #[test]
    fn a_line_of_the_limit_is_read_and_a_longer_one_is_skipped_whole() {
        let mut source = vec![b'x'; MAX_LINE_OCTETS];
        source.extend(b"\n");
        source.extend(vec![b'y'; 3 * MAX_LINE_OCTETS]);
        source.extend(b"\nz\n");
        let read = shown(&source);
        assert_eq!(read[0].len(), MAX_LINE_OCTETS + 2);
        assert_eq!(read[1..], ["2 TooLong", "3 z"]);
        assert_eq!(shown(&vec![b'y'; MAX_LINE_OCTETS + 1]), ["1 TooLong"]);
    }

    #[test]
    fn gzip_is_known_by_its_first_octets_and_may_have_several_members() {
        let mut packed = gzip(b"a\n");
        packed.extend(gzip(b"b\n"));
        assert_eq!(shown(&packed), ["1 a", "2 b"]);
        assert_eq!(shown(&GZIP_MAGIC), ["1 CutOff"]);
        assert_eq!(shown(&GZIP_MAGIC[..1]).len(), 1);
    }

    #[test]
    fn a_cut_off_or_damaged_stream_still_gives_the_lines_before() {
        let text: Vec<u8> = (0..20_000).flat_map(|n| format!("{n}\n").into_bytes()).collect();
        let packed = gzip(&text);
        let cut = shown(&packed[..packed.len() / 2]);
        assert_eq!(cut[0], "1 0");
        assert!(cut.len() > 1_000 && cut.last().unwrap().ends_with("CutOff"));
        let mut damaged = packed;
        let checksum = damaged.len() - 8;
        damaged[checksum] ^= 1;
        let damaged = shown(&damaged);
        assert_eq!(damaged.len(), 20_001);
        assert!(damaged[20_000].ends_with("InvalidInput"), "{}", damaged[20_000]);
    }
}
