//! hopline-timeline
