-- One tenant's tables on MySQL 8.4 and 9, MariaDB 10.11 and later. Names and meaning are the same on every store; only
-- types differ. Times are UTC by the database's clock.
--
-- DDL commits by itself: every statement must do nothing the second time. What is unique, or sorts, is bytes, so that no
-- collation folds two keys into one; other texts are utf8mb4, so that a person can read them.

CREATE TABLE IF NOT EXISTS ob_meta (
  name VARBINARY(64) NOT NULL PRIMARY KEY, value VARBINARY(1024) NOT NULL  -- schema, tenant_secret
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

CREATE TABLE IF NOT EXISTS ob_handler (
  handler_id INT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY,
  name VARBINARY(64) NOT NULL,
  mode TINYINT UNSIGNED NOT NULL DEFAULT 0,                            -- running, probing, paused, blocked
  mode_reason VARCHAR(255) NULL, mode_since DATETIME(6) NULL,
  UNIQUE KEY name (name)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

CREATE TABLE IF NOT EXISTS ob_rule (                                   -- how key, fingerprint and ordering key are made; rows never change
  rule_id INT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY,
  handler_id INT UNSIGNED NOT NULL, algorithm TINYINT UNSIGNED NOT NULL,
  key_template TEXT NOT NULL, fingerprint MEDIUMTEXT NOT NULL, ordering_template TEXT NULL,
  rule_hash BINARY(32) NOT NULL,
  UNIQUE KEY rule (handler_id, rule_hash)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

CREATE TABLE IF NOT EXISTS ob_inbox (                                  -- the one arbiter of "first"
  handler_id INT UNSIGNED NOT NULL, business_key VARBINARY(512) NOT NULL,
  state TINYINT UNSIGNED NOT NULL,                                     -- applied, skipped, parked, dead, discarded
  generation INT UNSIGNED NOT NULL DEFAULT 0,
  fingerprint BINARY(32) NOT NULL, rule_id INT UNSIGNED NOT NULL,
  token BINARY(16) NOT NULL,                                           -- of the unit of work that inserted it
  deployment_id INT UNSIGNED NULL, attempts INT UNSIGNED NOT NULL,     -- NULL: not run yet (parked unrun)
  duplicates INT UNSIGNED NOT NULL DEFAULT 0, duplicate_at DATETIME(6) NULL,
  event_id VARCHAR(255) NOT NULL, source VARCHAR(64) NOT NULL, traceparent VARCHAR(64) NULL,
  received_at DATETIME(6) NOT NULL, decided_at DATETIME(6) NOT NULL,
  code VARCHAR(64) NULL, result VARBINARY(1024) NULL,
  PRIMARY KEY (handler_id, business_key)                               -- and no other unique key: look-up, first, trace
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

CREATE TABLE IF NOT EXISTS ob_held (                                   -- parked, dead, conflict, poison; one row from first failure to the end
  held_id BIGINT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY,
  identity BINARY(32) NOT NULL,                                        -- hash(handler, key, fingerprint); without a key hash(source, handler or 0, message hash)
  handler_id INT UNSIGNED NOT NULL,                                    -- 0: no handler (undecodable, no route)
  state TINYINT UNSIGNED NOT NULL,                                     -- parked, dead, conflict, late, poison, resolved
  business_key VARBINARY(512) NULL,
  ordering_key VARBINARY(512) NULL, place BIGINT UNSIGNED NULL,        -- arrival order inside the ordering key, written under ob_order's lock
  due_at DATETIME(6) NULL,                                             -- claimable from; while leased: the lease's end; NULL: waits for a person
  lease_token BINARY(16) NULL,
  attempts INT UNSIGNED NOT NULL, attempts_short INT UNSIGNED NOT NULL DEFAULT 0, -- counted ones; of these traps, limits, 1062
  times INT UNSIGNED NOT NULL DEFAULT 1,                               -- the same identity again
  class TINYINT UNSIGNED NOT NULL, code VARCHAR(64) NOT NULL, message TEXT NOT NULL,
  fingerprint BINARY(32) NULL, rule_id INT UNSIGNED NULL, deployment_id INT UNSIGNED NULL,
  generation INT UNSIGNED NOT NULL DEFAULT 0,
  source VARCHAR(64) NOT NULL, hops TINYINT UNSIGNED NOT NULL DEFAULT 0,
  event_id VARCHAR(255) NULL, event_type VARCHAR(255) NULL, event_time DATETIME(6) NULL,
  received_at DATETIME(6) NOT NULL, changed_at DATETIME(6) NOT NULL,
  UNIQUE KEY identity (identity),
  KEY claim (handler_id, state, due_at, held_id),
  KEY by_order (handler_id, ordering_key, place),
  KEY by_key (handler_id, business_key),
  KEY by_state (state, handler_id, held_id)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

CREATE TABLE IF NOT EXISTS ob_body (                                   -- the message as it came: revision 0
  held_id BIGINT UNSIGNED NOT NULL, revision INT UNSIGNED NOT NULL,
  headers MEDIUMBLOB NOT NULL,                                         -- headers, content type, properties, position as JSON
  payload LONGBLOB NOT NULL, at DATETIME(6) NOT NULL,
  PRIMARY KEY (held_id, revision)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

CREATE TABLE IF NOT EXISTS ob_attempt (                                -- every run that did not apply at once
  held_id BIGINT UNSIGNED NOT NULL, generation INT UNSIGNED NOT NULL, attempt INT UNSIGNED NOT NULL,
  boot_id BINARY(16) NOT NULL, deployment_id INT UNSIGNED NULL,
  started_at DATETIME(6) NOT NULL, ended_at DATETIME(6) NOT NULL,
  class TINYINT UNSIGNED NOT NULL, code VARCHAR(64) NOT NULL, message TEXT NOT NULL, backtrace TEXT NULL,
  PRIMARY KEY (held_id, generation, attempt)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

CREATE TABLE IF NOT EXISTS ob_order (                                  -- the lock row of an ordering key: made by the first unit that uses it
  handler_id INT UNSIGNED NOT NULL, ordering_key VARBINARY(512) NOT NULL,
  held INT UNSIGNED NOT NULL DEFAULT 0,                                -- parked or blocking dead rows of the key
  next_place BIGINT UNSIGNED NOT NULL DEFAULT 0,                       -- of the next held row of the key
  used_at DATETIME(6) NOT NULL,
  PRIMARY KEY (handler_id, ordering_key)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

CREATE TABLE IF NOT EXISTS ob_tally (                                  -- the books: raised in each unit of work
  boot_id BINARY(16) NOT NULL, lane SMALLINT UNSIGNED NOT NULL,        -- a row a lane: one shared by lanes would be locked until COMMIT
  handler_id INT UNSIGNED NOT NULL, verdict TINYINT UNSIGNED NOT NULL, -- handler 0: none
  n BIGINT UNSIGNED NOT NULL, at DATETIME(6) NOT NULL,
  PRIMARY KEY (boot_id, lane, handler_id, verdict)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

CREATE TABLE IF NOT EXISTS ob_outbox (
  outbox_id BIGINT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY,
  event_id VARBINARY(64) NOT NULL,
  destination VARCHAR(64) NOT NULL, state TINYINT UNSIGNED NOT NULL,   -- kept, new, sending, confirmed, returned, unknown, dead
  handler_id INT UNSIGNED NULL, business_key VARBINARY(512) NULL,
  generation INT UNSIGNED NOT NULL DEFAULT 0, position INT UNSIGNED NOT NULL DEFAULT 0,
  ordering_key VARBINARY(512) NULL,
  event_type MEDIUMTEXT NOT NULL, subject MEDIUMTEXT NULL, content_type MEDIUMTEXT NULL, data_schema MEDIUMTEXT NULL,
  attributes MEDIUMBLOB NULL, headers MEDIUMBLOB NULL, payload LONGBLOB NOT NULL, traceparent VARCHAR(64) NULL,
  due_at DATETIME(6) NOT NULL,                                         -- not before (delay-ms)
  created_at DATETIME(6) NOT NULL,
  UNIQUE KEY event (event_id),
  KEY by_key (handler_id, business_key),
  KEY by_state (state, destination, outbox_id)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

CREATE TABLE IF NOT EXISTS ob_local (                                  -- local source: offered, not yet decided
  local_id BIGINT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY, source VARCHAR(64) NOT NULL,
  due_at DATETIME(6) NOT NULL,                                         -- claimable from; while leased: the lease's end
  lease_token BINARY(16) NULL, deliveries INT UNSIGNED NOT NULL DEFAULT 0,
  hops TINYINT UNSIGNED NOT NULL DEFAULT 0,                            -- one more for each handler that passed it on
  headers MEDIUMBLOB NOT NULL, payload LONGBLOB NOT NULL, received_at DATETIME(6) NOT NULL,
  KEY claim (source, due_at, local_id),
  KEY by_lease (lease_token)                                           -- lengthening leases looks at these rows alone
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

CREATE TABLE IF NOT EXISTS ob_module (
  digest BINARY(32) NOT NULL PRIMARY KEY, name VARCHAR(64) NOT NULL, version VARCHAR(64) NOT NULL,
  contract VARCHAR(32) NOT NULL, size INT UNSIGNED NOT NULL, manifest MEDIUMTEXT NOT NULL,
  created_at DATETIME(6) NOT NULL, created_by VARCHAR(128) NOT NULL
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

CREATE TABLE IF NOT EXISTS ob_module_chunk (                           -- 1 MiB each: a packet must hold one
  digest BINARY(32) NOT NULL, n INT UNSIGNED NOT NULL, bytes MEDIUMBLOB NOT NULL,
  PRIMARY KEY (digest, n)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

CREATE TABLE IF NOT EXISTS ob_deployment (
  deployment_id INT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY,
  handler_id INT UNSIGNED NOT NULL, digest BINARY(32) NOT NULL, rule_id INT UNSIGNED NOT NULL,
  state TINYINT UNSIGNED NOT NULL,                                     -- offered, active, canary, held, replaced, refused
  active_from DATETIME(6) NULL, replaces INT UNSIGNED NULL,
  created_at DATETIME(6) NOT NULL, created_by VARCHAR(128) NOT NULL, reason MEDIUMTEXT NULL,
  KEY by_state (handler_id, state, deployment_id)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

CREATE TABLE IF NOT EXISTS ob_boot (
  boot_id BINARY(16) NOT NULL PRIMARY KEY, host VARCHAR(255) NOT NULL, version VARCHAR(64) NOT NULL,
  started_at DATETIME(6) NOT NULL, seen_at DATETIME(6) NOT NULL,
  draining TINYINT UNSIGNED NOT NULL DEFAULT 0, ended_at DATETIME(6) NULL
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

CREATE TABLE IF NOT EXISTS ob_ready (                                  -- a live host's answer to a deployment
  deployment_id INT UNSIGNED NOT NULL, boot_id BINARY(16) NOT NULL,
  ready TINYINT UNSIGNED NOT NULL, message TEXT NULL, at DATETIME(6) NOT NULL,
  PRIMARY KEY (deployment_id, boot_id)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

CREATE TABLE IF NOT EXISTS ob_audit (
  audit_id BIGINT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY, at DATETIME(6) NOT NULL,
  actor VARCHAR(128) NOT NULL, via VARCHAR(32) NOT NULL, action VARCHAR(64) NOT NULL,
  handler_id INT UNSIGNED NULL, business_key VARBINARY(512) NULL, subject VARCHAR(255) NULL, reason TEXT NULL
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
