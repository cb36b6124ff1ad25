//! Writes the seeds of all fuzz targets below the folder that is named: a folder for each target.

use hopline_fuzz_targets::{seeds, targets};
use std::path::PathBuf;
use std::{env, fs, io, process};

fn main() -> io::Result<()> {
    let Some(corpus) = env::args_os().nth(1).map(PathBuf::from) else {
        eprintln!("usage: seeds FOLDER");
        process::exit(2);
    };
    for target in targets() {
        let folder = corpus.join(target.name);
        fs::create_dir_all(&folder)?;
        for (number, seed) in seeds::of(target.name).into_iter().enumerate() {
            fs::write(folder.join(format!("seed-{number:03}")), seed)?;
        }
    }
    Ok(())
}
