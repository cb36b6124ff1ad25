//! hopline-report
