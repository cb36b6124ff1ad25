//! Where bodies come from.

use bytes::Bytes;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

/// Octets of the longest line that is taken as a body.
const LINE_MAX: u64 = 64 << 20;

/// Bodies, one after the other.
pub(crate) enum Bodies {
    /// The same one for ever.
    Same(Bytes),
    /// The lines of a file or of standard input.
    Lines(Box<dyn BufRead>),
}

impl Bodies {
    /// Bodies of `size` octets.
    pub(crate) fn of_size(size: usize) -> Self {
        Self::Same(vec![b'.'; size].into())
    }

    /// The lines of `file`, or of standard input if it is `-`.
    pub(crate) fn lines(file: &Path) -> io::Result<Self> {
        if file.as_os_str() == "-" {
            return Ok(Self::Lines(Box::new(BufReader::new(io::stdin()))));
        }
        Ok(Self::Lines(Box::new(BufReader::new(File::open(file)?))))
    }

    /// The next one; `None` at the end. Reading standard input may block.
    pub(crate) fn next(&mut self) -> io::Result<Option<Bytes>> {
        match self {
            Self::Same(body) => Ok(Some(body.clone())),
            Self::Lines(lines) => {
                let mut line = Vec::new();
                let n = lines.by_ref().take(LINE_MAX).read_until(b'\n', &mut line)?;
                if n as u64 == LINE_MAX {
                    let text = format!("a line is longer than {LINE_MAX} octets");
                    return Err(io::Error::new(io::ErrorKind::InvalidData, text));
                }
                if line.last() == Some(&b'\n') {
                    line.pop();
                }
                Ok((n > 0).then(|| line.into()))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_line_is_a_body_and_the_last_one_needs_no_line_end() {
        let mut bodies = Bodies::Lines(Box::new(&b"one\n\nthree"[..]));
        for want in ["one", "", "three"] {
            assert_eq!(bodies.next().unwrap(), Some(Bytes::from(want)));
        }
        assert_eq!(bodies.next().unwrap(), None);
    }
}
