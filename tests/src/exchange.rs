use crate::{Client, Received};

/// Has one foreign client send `count` messages of `size` octets to an address, another receive
/// them, and checks that what was sent is what came, in order. Returns what came.
///
/// # Panics
/// If anything was lost or changed on the way.
pub fn exchange(
    sender: Client,
    receiver: Client,
    host: &str,
    address: &str,
    (count, size): (usize, usize),
    options: &[&str],
) -> Vec<Received> {
    let size_text = size.to_string();
    sender.send(host, address, count, &[&["--size", size_text.as_str()], options].concat());
    let received = receiver.receive(host, address, count);
    for (n, message) in received.iter().enumerate() {
        let body: Vec<u8> = (0..size).map(|i| ((n + i) % 251) as u8).collect();
        let route = format!("message {n} from {sender:?} to {receiver:?}");
        assert_eq!(message.message_id, Some(format!("{}-{n}", sender.name())), "{route}");
        assert_eq!(message.n, Some(n as u64), "{route}");
        assert_eq!(message.annotations["x-opt-sender"], sender.name(), "{route}");
        assert_eq!(message.durable, options.contains(&"--durable"), "{route}");
        assert_eq!(message.delivery_count, 0, "{route}");
        assert!(message.body == body, "{route}: the body changed");
    }
    received
}
