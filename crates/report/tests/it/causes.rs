//! Late messages whose true cause is known: it is named, and no other one is.

use crate::support::{Chain, MS, US};
use hopline_report::{Format, Late, Options, Wanted, run};
use serde_json::Value;

/// The report of these lines as JSON.
fn report_of(lines: &str) -> Value {
    json(Late::default(), lines)
}

fn json(late: Late, lines: &str) -> Value {
    let wanted = Wanted { slowest: 1, ..Wanted::default() };
    let options = Options { format: Format::Json, late, wanted, ..Options::default() };
    let mut out = Vec::new();
    run(&options, lines.as_bytes(), &mut out, std::io::sink()).unwrap();
    serde_json::from_slice(&out).unwrap()
}

fn report_over(late: Late, messages: impl IntoIterator<Item = Chain>) -> Value {
    json(late, &(0..).zip(messages).map(|(seq, chain)| chain.line(seq)).collect::<String>())
}

/// Of some ordinary messages and then the odd ones.
fn report(odd: impl IntoIterator<Item = Chain>) -> Value {
    report_over(Late::default(), (0..50).map(|_| Chain::default()).chain(odd))
}

/// Each late leg as `kind cause count`.
fn causes(report: &Value) -> Vec<String> {
    let rows = report["late"]["causes"].as_array().unwrap();
    let shown = rows.iter().map(|row| {
        let [kind, cause] = ["kind", "cause"].map(|name| row[name].as_str().unwrap());
        format!("{} {cause} {}", kind.strip_prefix("late_").unwrap(), row["count"])
    });
    shown.collect()
}

fn notes(report: &Value) -> String {
    report["notes"].to_string()
}

#[test]
fn where_nothing_is_late_there_is_no_cause() {
    let calm = report([]);
    assert!(causes(&calm).is_empty());
    assert!(!notes(&calm).contains("Nagle"));
    assert_eq!(calm["late"]["explanations"].as_object().unwrap().len(), 0);
}

#[test]
fn what_a_dequeue_waited_for_is_the_cause() {
    for (wait, cause) in [
        ("no-consumer", "no-consumer"),
        ("no-credit", "no-credit"),
        ("session-window", "session-window"),
        ("socket-full", "socket-full"),
        ("order", "order"),
        ("none", "node-busy"),
    ] {
        let odd = || Chain::default().takes("DEQUEUE", 30 * MS).waits("DEQUEUE", wait);
        let got = report([odd(), odd()]);
        assert_eq!(causes(&got), [format!("end_to_end {cause} 2"), format!("stay {cause} 2")]);
    }
}

#[test]
fn the_publisher_waits_for_credit_too() {
    let odd = Chain::default().takes("SEND", 30 * MS).waits("SEND", "no-credit");
    assert_eq!(causes(&report([odd])), ["end_to_end no-credit 1", "stay no-credit 1"]);
}

#[test]
fn a_publisher_behind_its_schedule_is_told_from_the_rest() {
    let got = report([Chain::default().due_before(80 * MS)]);
    assert_eq!(causes(&got), ["end_to_end publisher-late 1", "send_lag publisher-late 1"]);
}

#[test]
fn a_slow_application_and_a_busy_program_are_told_apart() {
    let slow = Chain::default().takes("NEXT_EVENT", 9 * MS);
    let got = report([slow]);
    assert_eq!(causes(&got), ["end_to_end application-queue 1", "stay application-queue 1"]);
    let busy = Chain::default().takes("DESERIALIZE", 9 * MS);
    assert_eq!(causes(&report([busy])), ["end_to_end node-busy 1", "stay node-busy 1"]);
}

#[test]
fn without_stamps_of_a_kernel_a_hop_is_not_told_apart() {
    let got = report([Chain::default().takes("RECEIVE", 9 * MS)]);
    let cause = "sender-kernel-wire-or-receiver";
    assert_eq!(causes(&got), [format!("end_to_end {cause} 1"), format!("hop {cause} 1")]);
    let told = got["late"]["explanations"][cause].as_str().unwrap();
    assert!(told.contains("without kernel timestamps this can't be told"), "{told}");
}

#[test]
fn stamps_of_both_kernels_tell_sender_wire_and_receiver_apart() {
    let kernels = || Chain::default().with_sender_kernel().with_receiver_kernel();
    let calm = || (0..50).map(|_| kernels());
    for (stage, cause) in [
        ("KERNEL_SCHED", "sender-kernel"),
        ("KERNEL_RECEIVE", "wire"),
        ("RECEIVE", "receiver-busy"),
    ] {
        let odd = kernels().takes(stage, 30 * MS);
        let got = report_over(Late::default(), calm().chain([odd]));
        let want = [format!("end_to_end {cause} 1"), format!("hop {cause} 1")];
        assert_eq!(causes(&got), want, "{stage}");
    }
}

#[test]
fn stamps_of_one_kernel_tell_half_of_it() {
    let receiver = || Chain::default().with_receiver_kernel();
    let sender = || Chain::default().with_sender_kernel();
    for (odd, cause) in [
        (receiver().takes("KERNEL_RECEIVE", 30 * MS), "sender-kernel-or-wire"),
        (receiver().takes("RECEIVE", 30 * MS), "receiver-busy"),
        (sender().takes("KERNEL_SCHED", 30 * MS), "sender-kernel"),
        (sender().takes("RECEIVE", 30 * MS), "wire-or-receiver"),
    ] {
        let want = [format!("end_to_end {cause} 1"), format!("hop {cause} 1")];
        assert_eq!(causes(&report([odd])), want);
    }
}

#[test]
fn a_larger_message_ahead_is_the_cause_only_while_it_is_ahead() {
    let behind = "behind-larger";
    let large = || Chain::default().octets(4 << 20).takes("RECEIVE", 40 * MS);
    // Sent while the large one is under way, received together with it.
    let small = large().octets(100).later(10 * US).takes("RECEIVE", 40 * MS);
    let got = report([large(), small]);
    assert!(causes(&got).contains(&format!("hop {behind} 1")), "{:?}", causes(&got));

    let after = Chain::default().later(200 * MS).takes("RECEIVE", 40 * MS);
    let same_size = large().later(10 * US);
    for odd in [after, same_size] {
        let got = report([large(), odd]);
        assert!(!causes(&got).iter().any(|cause| cause.contains(behind)), "{:?}", causes(&got));
    }
}

#[test]
fn a_plateau_near_40_ms_is_told_as_nagle_with_the_remedy() {
    let stalled =
        |n: i64| Chain::default().takes("RECEIVE", [41, 31, 21, 11, 1][n as usize % 5] * MS);
    let got = report_over(Late::Over(5 * MS), (0..100).map(stalled));
    let told = notes(&got);
    assert!(
        told.contains("20 of 100 small messages took 33 to 50 ms from broker to sub"),
        "{told}"
    );
    assert!(told.contains("make sure that TCP_NODELAY is set there"), "{told}");
    assert_eq!(causes(&got)[0], "end_to_end sender-kernel-wire-or-receiver 80");
}

#[test]
fn a_plateau_that_lies_elsewhere_is_not_nagle() {
    let receiver_busy = |n: i64| {
        let ms = [41, 31, 21, 11, 1][n as usize % 5] * MS;
        Chain::default().with_receiver_kernel().takes("RECEIVE", ms)
    };
    let got = report_over(Late::Over(5 * MS), (0..100).map(receiver_busy));
    assert!(!notes(&got).contains("Nagle"), "{}", notes(&got));
    let large = |n: i64| Chain::default().octets(9_000).takes("RECEIVE", (1 + n % 2 * 40) * MS);
    assert!(!notes(&report_over(Late::default(), (0..100).map(large))).contains("Nagle"));
}

#[test]
fn late_is_over_five_times_the_median_and_not_just_over_it() {
    // An ordinary hop takes 20 us.
    let at = |ns| Chain::default().takes("RECEIVE", ns);
    assert!(causes(&report([at(99 * US)])).is_empty());
    assert_eq!(causes(&report([at(101 * US)])), ["hop sender-kernel-wire-or-receiver 1"]);
    let calm = || (0..50).map(|_| Chain::default());
    let over = |late| causes(&report_over(late, calm().chain([at(101 * US)]))).len();
    assert_eq!(
        (over(Late::Times(7_000)), over(Late::Over(MS)), over(Late::Over(100 * US))),
        (0, 0, 2)
    );
}

#[test]
fn a_traced_message_says_its_own_cause_at_the_stamp_that_shows_it() {
    let odd = Chain::default().takes("DEQUEUE", 30 * MS).waits("DEQUEUE", "no-credit");
    let got = report([odd]);
    let trace = &got["traces"][0];
    let late = trace["late"].as_array().unwrap();
    assert_eq!(late.len(), 2);
    for leg in late {
        let stamp = &trace["stamps"][leg["stamp"].as_u64().unwrap() as usize];
        assert_eq!((&leg["cause"], &stamp["stage"]), (&"no-credit".into(), &"DEQUEUE".into()));
        assert!(leg["delay_ns"].is_string() && leg["limit_ns"].is_string());
    }
}

/// The broker's kernel as a side record: held back for a while, then sent.
fn kernel_line(chain: &Chain, seq: u64, held: &str, waited: i64) -> String {
    let timeline = chain.timeline(seq);
    let send = timeline.stamps.iter().rfind(|stamp| stamp.stage == 5).unwrap();
    let at = send.at.unwrap().as_nanos();
    format!(
        "{{\"hopline\":\"kernel\",\"schema\":1,\"node\":\"broker\",\"id\":\"{}\",\
         \"send_ns\":\"{at}\",\
         \"held\":\"{held}\",\"stamps\":[{{\"stage\":\"KERNEL_SCHED\",\"at_ns\":\"{}\"}}]}}\n",
        timeline.id,
        at + waited
    )
}

#[test]
fn what_the_sender_s_kernel_told_about_a_message_is_its_cause() {
    for (held, cause) in [
        ("nagle", "nagle"),
        ("cork", "cork"),
        ("receive-window", "receive-window"),
        ("congestion", "congestion"),
        ("unknown", "sender-kernel"),
    ] {
        let chains: Vec<_> =
            (0..20)
                .map(|n| {
                    if n == 7 {
                        Chain::default().takes("RECEIVE", 40 * MS)
                    } else {
                        Chain::default()
                    }
                })
                .collect();
        let side =
            kernel_line(&chains[7], 7, held, 39 * MS) + &kernel_line(&chains[0], 99, held, 1);
        let messages: String = (0..).zip(&chains).map(|(seq, chain)| chain.line(seq)).collect();
        let got = report_of(&(side + &messages));
        let want = [format!("end_to_end {cause} 1"), format!("hop {cause} 1")];
        assert_eq!(causes(&got), want);
        assert_eq!(
            (&got["counts"]["kernel"], &got["counts"]["kernel_unused"]),
            (&2.into(), &1.into())
        );
    }
}

#[test]
fn a_message_that_was_held_for_a_moment_and_then_lay_in_the_receiver_was_not_late_by_nagle() {
    let odd = Chain::default().with_receiver_kernel().takes("RECEIVE", 40 * MS);
    let side = kernel_line(&odd, 20, "nagle", 2 * US);
    let calm = (0..20).map(|seq| Chain::default().with_receiver_kernel().line(seq));
    let got = report_of(&(side + &calm.collect::<String>() + &odd.line(20)));
    assert_eq!(causes(&got), ["end_to_end receiver-busy 1", "hop receiver-busy 1"]);
}

/// The line of a message that shared its read with later ones: its KERNEL_RECEIVE is an upper
/// bound.
/// With the sender's KERNEL_ACK so long before RECEIVE, if there is one.
fn in_one_read(chain: &Chain, seq: u64, acknowledged_before: Option<i64>) -> String {
    let mut line: Value = serde_json::from_str(&chain.line(seq)).unwrap();
    let stamps = line["stamps"].as_array_mut().unwrap();
    let is = |stamp: &Value, stage: &str| stamp["stage"] == *stage;
    let arrived = stamps.iter().position(|stamp| is(stamp, "KERNEL_RECEIVE")).unwrap();
    stamps[arrived]["detail"] = 1.into();
    let received = stamps[arrived + 1]["at_ns"].as_str().unwrap().parse::<i64>().unwrap();
    assert!(is(&stamps[arrived + 1], "RECEIVE"));
    if let Some(before) = acknowledged_before {
        let sent = stamps.iter().position(|stamp| is(stamp, "KERNEL_SCHED")).unwrap();
        let mut acknowledged = stamps[sent].clone();
        acknowledged["stage"] = "KERNEL_ACK".into();
        acknowledged["at_ns"] = (received - before).to_string().into();
        stamps.insert(sent + 1, acknowledged);
    }
    line.to_string() + "\n"
}

#[test]
fn what_shares_a_read_with_later_messages_was_not_on_the_wire_until_they_came() {
    let kernels = || Chain::default().with_sender_kernel().with_receiver_kernel();
    let calm: String = (0..50).map(|seq| kernels().line(seq)).collect();
    let odd = kernels().takes("KERNEL_RECEIVE", 30 * MS);
    for (acknowledged_before, cause) in [
        (None, "wire-or-receiver"),
        (Some(10 * US), "wire-or-receiver"),
        (Some(-20 * MS), "wire-or-receiver"),
        (Some(20 * MS), "receiver-busy"),
        (Some(6 * MS), "receiver-busy"),
    ] {
        let got = report_of(&(calm.clone() + &in_one_read(&odd, 50, acknowledged_before)));
        let want = [format!("end_to_end {cause} 1"), format!("hop {cause} 1")];
        assert_eq!(causes(&got), want, "{acknowledged_before:?}");
    }
}

/// Two messages of one read, the first of which was sent again; the second had arrived before it.
fn sent_again(odd: &Chain, acknowledged_before: Option<i64>) -> (String, String) {
    let first = in_one_read(odd, 50, acknowledged_before);
    let mut first: Value = serde_json::from_str(&first).unwrap();
    let stamps = first["stamps"].as_array_mut().unwrap();
    let sched = stamps.iter_mut().find(|stamp| stamp["stage"] == "KERNEL_SCHED").unwrap();
    sched["detail"] = 2.into();
    let is_received = |stamp: &Value| stamp["stage"] == "RECEIVE";
    let at = stamps.iter().rfind(|stamp| is_received(stamp)).unwrap()["at_ns"].clone();
    let mut behind: Value = serde_json::from_str(&odd.line(51)).unwrap();
    let stamps = behind["stamps"].as_array_mut().unwrap();
    stamps.iter_mut().rfind(|stamp| is_received(stamp)).unwrap()["at_ns"] = at;
    (first.to_string() + "\n", behind.to_string() + "\n")
}

fn hops(input: &str) -> Vec<String> {
    causes(&report_of(input)).into_iter().filter(|cause| cause.starts_with("hop ")).collect()
}

#[test]
fn a_read_that_waited_for_a_lost_segment_is_the_wires_for_all_that_it_brought() {
    let kernels = || Chain::default().with_sender_kernel().with_receiver_kernel();
    let calm: String = (0..50).map(|seq| kernels().line(seq)).collect();
    let odd = kernels().takes("RECEIVE", 30 * MS);
    for (acknowledged_before, cause) in [
        (None, "wire"),
        // The kernel acknowledges what was missing as it comes; the read follows at once.
        (Some(50 * US), "wire"),
        (Some(-MS), "wire"),
        // It came long before the read: nothing was missing when the process was away.
        (Some(25 * MS), "receiver-busy"),
    ] {
        let (first, behind) = sent_again(&odd, acknowledged_before);
        let got = hops(&(calm.clone() + &first + &behind));
        assert_eq!(got, [format!("hop {cause} 2")], "{acknowledged_before:?}");
    }
    let (_, alone) = sent_again(&odd, None);
    assert_eq!(hops(&(calm + &alone)), ["hop receiver-busy 1"]);
}
