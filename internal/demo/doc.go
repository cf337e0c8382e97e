// Package demo runs the whole product at small scale and checks its work: three nodes as real processes, traffic in Redis, and an auditor
// that compares the database with the acknowledged writes.
//
//	generator ──► Redis ──► nodes (baton run ×3) ──► database ──► auditor
//	    └───────────────── what must be in the tables ──────────────┘
//
// The demo sees the nodes only from outside: their processes, the keys that the election publishes, their status API and the rows in the
// tables. It shares no code with the flush, because otherwise a mistake in the flush could also hide itself in the audit.
package demo
