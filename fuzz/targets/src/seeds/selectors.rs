use crate::selector::sample;

/// Expressions of every kind.
const SELECTORS: &[&str] = &[
    "TRUE",
    "colour = 'red' AND n > 6",
    "NOT (n <> 7) OR weight BETWEEN 2 AND 3.5E0",
    "colour IN ('red', 'it''s') AND colour NOT IN ('blue')",
    "colour LIKE 'r_d%' AND colour NOT LIKE 'x!%' ESCAPE '!'",
    "none IS NULL AND missing IS NULL AND yes IS NOT NULL AND yes",
    "-n + 2 * (3 - big / 4.0) <= +1 OR nan = nan",
    "JMSPriority >= 9 AND JMSDeliveryMode = 'PERSISTENT'",
    "properties.subject = 'news' OR amqp.priority > 4",
    "price > 0x1F AND price < 9223372036854775807",
    "((((((((((n = 7))))))))))",
    "\"odd name\" = 'größe' OR $x_1 = 1",
    "n = ",
    "'unterminated",
];

/// Each expression, with a message behind it or without.
pub(super) fn seeds() -> Vec<Vec<u8>> {
    let lone = SELECTORS.iter().map(|text| seed(text, &[]));
    lone.chain([seed(SELECTORS[1], &sample()), seed(&" OR n = 1".repeat(90)[4..], &[])]).collect()
}

fn seed(text: &str, message: &[u8]) -> Vec<u8> {
    let length = u16::try_from(text.len()).expect("an expression of the seeds is short");
    [&length.to_be_bytes()[..], text.as_bytes(), message].concat()
}
