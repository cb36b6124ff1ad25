//! What a process, and the machine, have spent so far, and what a process holds.

use crate::Error;
use rustix::param::clock_ticks_per_second;
use std::fs;
use std::ops::Sub;
use std::path::{Path, PathBuf};

/// CPU time and context switches of a process, all threads.
#[derive(Copy, Clone, Debug, Default, PartialEq)]
pub(crate) struct ProcessCpu {
    /// In user mode, s; to 10 ms.
    pub(crate) user_s: f64,
    /// In the kernel, s; to 10 ms.
    pub(crate) system_s: f64,
    /// Switches to other threads, wanted (it waited) and not.
    pub(crate) switches: u64,
}

/// Time of all cores of the machine, s.
#[derive(Copy, Clone, Debug, Default, PartialEq)]
pub(crate) struct MachineCpu {
    pub(crate) user_s: f64,
    pub(crate) system_s: f64,
    pub(crate) idle_s: f64,
    pub(crate) wait_s: f64,
    pub(crate) irq_s: f64,
    pub(crate) softirq_s: f64,
}

impl ProcessCpu {
    /// In user mode and in the kernel, s.
    pub(crate) fn all_s(&self) -> f64 {
        self.user_s + self.system_s
    }

    /// Asks `/proc`.
    pub(crate) fn of(id: u32) -> Result<Self, Error> {
        let folder = PathBuf::from(format!("/proc/{id}"));
        let (user_s, system_s) = times(&read(&folder.join("stat"))?);
        let tasks = folder.join("task");
        let entries = fs::read_dir(&tasks).map_err(Error::file(&tasks))?;
        // A thread that ends meanwhile has no file any more.
        let status = entries.flatten().map(|task| fs::read_to_string(task.path().join("status")));
        let switches = status.flatten().map(|text| switches(&text)).sum();
        Ok(Self { user_s, system_s, switches })
    }
}

/// Memory of a process that is resident, KiB.
pub(crate) fn resident_kib(id: u32) -> Result<u64, Error> {
    Ok(resident(&read(&PathBuf::from(format!("/proc/{id}/status")))?))
}

impl MachineCpu {
    /// Asks `/proc/stat`.
    pub(crate) fn now() -> Result<Self, Error> {
        Ok(machine(&read(Path::new("/proc/stat"))?))
    }

    pub(crate) fn all_s(&self) -> f64 {
        self.user_s + self.system_s + self.idle_s + self.wait_s + self.irq_s + self.softirq_s
    }
}

impl Sub for ProcessCpu {
    type Output = Self;

    fn sub(self, earlier: Self) -> Self {
        Self {
            user_s: self.user_s - earlier.user_s,
            system_s: self.system_s - earlier.system_s,
            switches: self.switches.saturating_sub(earlier.switches),
        }
    }
}

impl Sub for MachineCpu {
    type Output = Self;

    fn sub(self, earlier: Self) -> Self {
        Self {
            user_s: self.user_s - earlier.user_s,
            system_s: self.system_s - earlier.system_s,
            idle_s: self.idle_s - earlier.idle_s,
            wait_s: self.wait_s - earlier.wait_s,
            irq_s: self.irq_s - earlier.irq_s,
            softirq_s: self.softirq_s - earlier.softirq_s,
        }
    }
}

fn read(path: &Path) -> Result<String, Error> {
    fs::read_to_string(path).map_err(Error::file(path))
}

fn seconds(ticks: &str) -> f64 {
    ticks.parse::<u64>().map_or(0.0, |ticks| ticks as f64 / clock_ticks_per_second() as f64)
}

/// `utime` and `stime` of proc(5): the 14th and 15th field; the second may hold spaces.
fn times(stat: &str) -> (f64, f64) {
    let behind_name = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
    let mut fields = behind_name.split_ascii_whitespace().skip(11);
    let mut next = || fields.next().map_or(0.0, seconds);
    (next(), next())
}

fn switches(status: &str) -> u64 {
    let counts = status.lines().filter_map(|line| {
        let (name, count) = line.split_once(':')?;
        name.ends_with("voluntary_ctxt_switches").then(|| count.trim().parse::<u64>().ok())?
    });
    counts.sum()
}

/// `VmRSS` of proc(5).
fn resident(status: &str) -> u64 {
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let number = line.and_then(|line| line.trim().strip_suffix(" kB"));
    number.and_then(|number| number.trim().parse().ok()).unwrap_or(0)
}

fn machine(stat: &str) -> MachineCpu {
    let line = stat.lines().find_map(|line| line.strip_prefix("cpu "));
    let mut fields = line.unwrap_or_default().split_ascii_whitespace().map(seconds);
    let mut next = || fields.next().unwrap_or(0.0);
    let (user, nice, system_s, idle_s) = (next(), next(), next(), next());
    let (wait_s, irq_s, softirq_s) = (next(), next(), next());
    MachineCpu { user_s: user + nice, system_s, idle_s, wait_s, irq_s, softirq_s }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fields_are_found_behind_a_name_with_spaces_and_brackets() {
        let hz = clock_ticks_per_second() as f64;
        let stat = "42 (a (b) c) S 1 42 42 0 -1 4194304 100 0 0 0 1500 250 0 0 20 0 1 0 99";
        assert_eq!(times(stat), (1500.0 / hz, 250.0 / hz));
        assert_eq!(times("garbage"), (0.0, 0.0));
        let status = "Name:\tx\nvoluntary_ctxt_switches:\t7\nnonvoluntary_ctxt_switches:\t3\n";
        assert_eq!(switches(status), 10);
        assert_eq!(resident("VmPeak:\t  99 kB\nVmRSS:\t   14808 kB\n"), 14_808);
    }

    #[test]
    fn the_machines_line_is_the_first_one() {
        let hz = clock_ticks_per_second() as f64;
        let got = machine("cpu  100 20 30 400 5 6 7 0 0 0\ncpu0 1 2 3 4 5 6 7 0 0 0\n");
        let want = [120.0, 30.0, 400.0, 5.0, 6.0, 7.0].map(|ticks| ticks / hz);
        let [user_s, system_s, idle_s, wait_s, irq_s, softirq_s] = want;
        assert_eq!(got, MachineCpu { user_s, system_s, idle_s, wait_s, irq_s, softirq_s });
        assert!((got.all_s() - 568.0 / hz).abs() < 1e-9);
    }

    #[test]
    fn a_process_that_works_spends_time() {
        let before = ProcessCpu::of(std::process::id()).unwrap();
        let mut spent = ProcessCpu::default();
        let mut sum = 0_u64;
        while spent.user_s + spent.system_s <= 0.0 {
            sum = (0..1_000_000_u64).fold(sum, |sum, n| sum.rotate_left(3) ^ n);
            spent = ProcessCpu::of(std::process::id()).unwrap() - before;
        }
        assert!(sum != 1, "the work is not optimised away");
    }
}
