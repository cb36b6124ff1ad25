//! Tests of the report, from records to text: one program for all, as each costs a link.

mod causes;
mod exports;
mod field_report;
mod golden;
mod hostile;
mod page;
mod support;
