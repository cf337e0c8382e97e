// Package demo runs the whole product at small scale and checks its work: three nodes as real processes, traffic in Redis, and an auditor
// that compares the database with the acknowledged writes.
//
//	generator ──► Redis ──► nodes (baton run ×3) ──► database ──► auditor
//	    └───────────────── what must be in the tables ──────────────┘
//
// It sees the nodes from outside only: by their processes, by the keys that the election publishes, by their status API and by the rows
// in the tables. It shares no code with the flush, so that a mistake there cannot hide itself here.
package demo
