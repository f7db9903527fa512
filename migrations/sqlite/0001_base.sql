-- One tenant's tables on the embedded store. Times are microseconds since 1970 (UTC) by the database's clock.
-- Names and meaning are the same on every store; only types differ.

CREATE TABLE ob_meta (
  name TEXT PRIMARY KEY, value BLOB NOT NULL                           -- tenant_secret, tenant
) STRICT, WITHOUT ROWID;

CREATE TABLE ob_handler (
  handler_id INTEGER PRIMARY KEY AUTOINCREMENT,
  name TEXT NOT NULL UNIQUE
) STRICT;

CREATE TABLE ob_rule (                                                 -- how key, fingerprint and ordering key are made; rows never change
  rule_id INTEGER PRIMARY KEY AUTOINCREMENT,
  handler_id INTEGER NOT NULL, algorithm INTEGER NOT NULL,
  key_template TEXT NOT NULL, fingerprint TEXT NOT NULL, ordering_template TEXT,
  rule_hash BLOB NOT NULL, UNIQUE (handler_id, rule_hash)
) STRICT;

CREATE TABLE ob_inbox (                                                -- the one arbiter of "first"
  handler_id INTEGER NOT NULL, business_key BLOB NOT NULL,
  state INTEGER NOT NULL,                                              -- applied, skipped, parked, dead, discarded
  generation INTEGER NOT NULL DEFAULT 0,
  fingerprint BLOB NOT NULL, rule_id INTEGER NOT NULL,
  token BLOB NOT NULL,                                                 -- of the unit of work that inserted it
  deployment_id INTEGER, attempts INTEGER NOT NULL,                    -- NULL: not run yet (parked unrun)
  duplicates INTEGER NOT NULL DEFAULT 0, duplicate_at INTEGER,
  event_id TEXT NOT NULL, source TEXT NOT NULL, traceparent TEXT,
  received_at INTEGER NOT NULL, decided_at INTEGER NOT NULL,
  code TEXT, result BLOB,
  PRIMARY KEY (handler_id, business_key)
) STRICT, WITHOUT ROWID;

CREATE TABLE ob_held (                                                 -- parked, dead, conflict, poison; one row from first failure to the end
  held_id INTEGER PRIMARY KEY AUTOINCREMENT,
  identity BLOB NOT NULL UNIQUE,                                       -- hash(handler, key, fingerprint); without a key hash(source, handler or 0, message hash)
  handler_id INTEGER NOT NULL,                                         -- 0: no handler (undecodable, no route)
  state INTEGER NOT NULL,                                              -- parked, dead, conflict, late, poison, resolved
  business_key BLOB,
  due_at INTEGER,                                                      -- claimable from; while leased: the lease's end; NULL: waits for a person
  lease_token BLOB,
  attempts INTEGER NOT NULL, attempts_short INTEGER NOT NULL DEFAULT 0, -- counted ones; of these traps, limits, 1062
  times INTEGER NOT NULL DEFAULT 1,                                    -- the same identity again
  class INTEGER NOT NULL, code TEXT NOT NULL, message TEXT NOT NULL,
  fingerprint BLOB, rule_id INTEGER, deployment_id INTEGER,
  generation INTEGER NOT NULL DEFAULT 0,
  source TEXT NOT NULL, hops INTEGER NOT NULL DEFAULT 0,
  event_id TEXT, event_type TEXT, event_time INTEGER,
  received_at INTEGER NOT NULL, changed_at INTEGER NOT NULL
) STRICT;
CREATE INDEX ob_held_claim ON ob_held (handler_id, due_at, held_id) WHERE state = 0;
CREATE INDEX ob_held_by_key ON ob_held (handler_id, business_key);
CREATE INDEX ob_held_by_state ON ob_held (state, handler_id, held_id);

CREATE TABLE ob_body (                                                 -- the message as it came: revision 0
  held_id INTEGER NOT NULL, revision INTEGER NOT NULL,
  headers BLOB NOT NULL,                                               -- headers, content type, properties, position as JSON
  payload BLOB NOT NULL, at INTEGER NOT NULL,
  PRIMARY KEY (held_id, revision)
) STRICT;

CREATE TABLE ob_attempt (                                              -- every run that did not apply at once
  held_id INTEGER NOT NULL, generation INTEGER NOT NULL, attempt INTEGER NOT NULL,
  boot_id BLOB NOT NULL, deployment_id INTEGER,
  started_at INTEGER NOT NULL, ended_at INTEGER NOT NULL,
  class INTEGER NOT NULL, code TEXT NOT NULL, message TEXT NOT NULL, backtrace TEXT,
  PRIMARY KEY (held_id, generation, attempt)
) STRICT, WITHOUT ROWID;

CREATE TABLE ob_tally (                                                -- the books: raised in each unit of work
  boot_id BLOB NOT NULL, lane INTEGER NOT NULL,
  handler_id INTEGER NOT NULL, verdict INTEGER NOT NULL,               -- handler 0: none
  n INTEGER NOT NULL, at INTEGER NOT NULL,
  PRIMARY KEY (boot_id, lane, handler_id, verdict)
) STRICT, WITHOUT ROWID;

CREATE TABLE ob_outbox (
  outbox_id INTEGER PRIMARY KEY AUTOINCREMENT,
  event_id TEXT NOT NULL UNIQUE,
  destination TEXT NOT NULL, state INTEGER NOT NULL,                   -- kept, new, sending, confirmed, returned, unknown, dead
  handler_id INTEGER, business_key BLOB,
  generation INTEGER NOT NULL DEFAULT 0, position INTEGER NOT NULL DEFAULT 0,
  ordering_key BLOB, event_type TEXT NOT NULL, subject TEXT, content_type TEXT, data_schema TEXT,
  attributes BLOB, headers BLOB, payload BLOB NOT NULL, traceparent TEXT,
  due_at INTEGER NOT NULL,                                             -- not before (delay-ms)
  created_at INTEGER NOT NULL
) STRICT;
CREATE INDEX ob_outbox_by_key ON ob_outbox (handler_id, business_key);
CREATE INDEX ob_outbox_by_state ON ob_outbox (state, destination, outbox_id);

CREATE TABLE ob_local (                                                -- local source: offered, not yet decided
  local_id INTEGER PRIMARY KEY AUTOINCREMENT, source TEXT NOT NULL,
  due_at INTEGER NOT NULL,                                             -- claimable from; while leased: the lease's end
  lease_token BLOB, deliveries INTEGER NOT NULL DEFAULT 0,
  hops INTEGER NOT NULL DEFAULT 0,                                     -- one more for each handler that passed it on
  headers BLOB NOT NULL, payload BLOB NOT NULL, received_at INTEGER NOT NULL
) STRICT;
CREATE INDEX ob_local_claim ON ob_local (source, due_at, local_id);

CREATE TABLE ob_module (
  digest BLOB PRIMARY KEY, name TEXT NOT NULL, version TEXT NOT NULL, contract TEXT NOT NULL,
  size INTEGER NOT NULL, manifest TEXT NOT NULL, created_at INTEGER NOT NULL, created_by TEXT NOT NULL
) STRICT;
CREATE TABLE ob_module_chunk (                                         -- 1 MiB each
  digest BLOB NOT NULL, n INTEGER NOT NULL, bytes BLOB NOT NULL, PRIMARY KEY (digest, n)
) STRICT;

CREATE TABLE ob_deployment (
  deployment_id INTEGER PRIMARY KEY AUTOINCREMENT, handler_id INTEGER NOT NULL, digest BLOB NOT NULL, rule_id INTEGER NOT NULL,
  state INTEGER NOT NULL,                                              -- offered, active, canary, held, replaced, refused
  active_from INTEGER, replaces INTEGER,
  created_at INTEGER NOT NULL, created_by TEXT NOT NULL, reason TEXT
) STRICT;
CREATE INDEX ob_deployment_by_state ON ob_deployment (handler_id, state, deployment_id);

CREATE TABLE ob_boot (
  boot_id BLOB PRIMARY KEY, host TEXT NOT NULL, version TEXT NOT NULL,
  started_at INTEGER NOT NULL, ended_at INTEGER
) STRICT;

CREATE TABLE ob_audit (
  audit_id INTEGER PRIMARY KEY AUTOINCREMENT, at INTEGER NOT NULL, actor TEXT NOT NULL, via TEXT NOT NULL,
  action TEXT NOT NULL, handler_id INTEGER, business_key BLOB, subject TEXT, reason TEXT
) STRICT;
