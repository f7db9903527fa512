-- What the SQL gate must know of this one database: MySQL shows triggers and referring tables only to who has rights on
-- them, and the user of a host has none. Made by `oncebox migrate`, whose user it runs as. In braces stand a name of this
-- text and two queries of InnoDB's own list, the only one that tells foreign keys of other databases. It asks for PROCESS
-- and goes through all of the server's; named in the text itself, it would ask the caller for that right too.
--
-- 'version': a number that moves with every definition of a business table, its indexes, triggers and foreign keys;
-- 'elsewhere': one that moves with foreign keys of other databases that refer to this one. Otherwise rows of texts:
-- ('seen', user, triggers?, foreign keys of other databases?, database), ('table', name, type, engine),
-- ('trigger', table, name),
-- ('key', table, name, referring table, on delete, on update).
CREATE PROCEDURE ob_catalogue(IN what VARCHAR(16))
  READS SQL DATA
  SQL SECURITY DEFINER
  COMMENT '{mark}'
BEGIN
  DECLARE account_host VARCHAR(255) DEFAULT SUBSTRING_INDEX(CURRENT_USER(), '@', -1);
  DECLARE account VARCHAR(300) DEFAULT CONCAT('''',
    LEFT(CURRENT_USER(), CHAR_LENGTH(CURRENT_USER()) - CHAR_LENGTH(account_host) - 1), '''@''', account_host, '''');
  DECLARE sees_triggers, sees_elsewhere BIGINT UNSIGNED DEFAULT 0;

  IF what = 'version' THEN
    SELECT CAST(COALESCE(BIT_XOR(CAST(CONV(LEFT(SHA2(fact, 256), 15), 16, 10) AS UNSIGNED)), 0) AS SIGNED)
    FROM (
      SELECT CONCAT_WS(0x00, 'table', TABLE_NAME, TABLE_TYPE, COALESCE(ENGINE, '')) AS fact
        FROM information_schema.TABLES WHERE TABLE_SCHEMA = DATABASE()
      UNION ALL SELECT CONCAT_WS(0x00, 'column', TABLE_NAME, COLUMN_NAME, ORDINAL_POSITION,
          COALESCE(COLUMN_DEFAULT, 0x01), IS_NULLABLE, COLUMN_TYPE, COALESCE(COLLATION_NAME, ''), EXTRA,
          COALESCE(GENERATION_EXPRESSION, ''))
        FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME NOT LIKE 'ob|_%' ESCAPE '|'
      UNION ALL SELECT CONCAT_WS(0x00, 'index', TABLE_NAME, INDEX_NAME, NON_UNIQUE, SEQ_IN_INDEX,
          COALESCE(COLUMN_NAME, ''))
        FROM information_schema.STATISTICS WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME NOT LIKE 'ob|_%' ESCAPE '|'
      UNION ALL SELECT CONCAT_WS(0x00, 'trigger', EVENT_OBJECT_TABLE, TRIGGER_NAME, EVENT_MANIPULATION, ACTION_TIMING,
          ACTION_STATEMENT)
        FROM information_schema.TRIGGERS WHERE EVENT_OBJECT_SCHEMA = DATABASE()
      UNION ALL SELECT CONCAT_WS(0x00, 'key', TABLE_NAME, CONSTRAINT_NAME, UNIQUE_CONSTRAINT_SCHEMA,
          REFERENCED_TABLE_NAME, DELETE_RULE, UPDATE_RULE)
        FROM information_schema.REFERENTIAL_CONSTRAINTS WHERE CONSTRAINT_SCHEMA = DATABASE()
    ) AS facts;
  ELSE
    SET @ob_elsewhere = 0;
    BEGIN
      DECLARE EXIT HANDLER FOR 1227 SET sees_elsewhere = 0;
      PREPARE ob_elsewhere FROM '{elsewhere_version}';
      EXECUTE ob_elsewhere;
      DEALLOCATE PREPARE ob_elsewhere;
      SET sees_elsewhere = 1;
    END;
    IF what = 'elsewhere' THEN
      SELECT CAST(@ob_elsewhere AS SIGNED);
    ELSE
      -- A right that is not there hides rows without an error.
      SELECT COUNT(*) INTO sees_triggers FROM (
        SELECT 1 FROM information_schema.SCHEMA_PRIVILEGES
        WHERE GRANTEE = account AND PRIVILEGE_TYPE = 'TRIGGER' AND DATABASE() LIKE TABLE_SCHEMA
        UNION ALL SELECT 1 FROM information_schema.USER_PRIVILEGES
        WHERE GRANTEE = account AND PRIVILEGE_TYPE = 'TRIGGER') AS granted;
      SELECT 'seen', account, IF(sees_triggers > 0, 'yes', 'no'), IF(sees_elsewhere > 0, 'yes', 'no'), DATABASE(),
        NULL;
      SELECT 'table', TABLE_NAME, TABLE_TYPE, ENGINE, NULL, NULL
        FROM information_schema.TABLES WHERE TABLE_SCHEMA = DATABASE();
      SELECT 'trigger', EVENT_OBJECT_TABLE, TRIGGER_NAME, NULL, NULL, NULL
        FROM information_schema.TRIGGERS WHERE EVENT_OBJECT_SCHEMA = DATABASE();
      SELECT 'key', REFERENCED_TABLE_NAME, CONSTRAINT_NAME, TABLE_NAME, DELETE_RULE, UPDATE_RULE
        FROM information_schema.REFERENTIAL_CONSTRAINTS
        WHERE CONSTRAINT_SCHEMA = DATABASE() AND UNIQUE_CONSTRAINT_SCHEMA = DATABASE();
      IF sees_elsewhere > 0 THEN
        PREPARE ob_elsewhere FROM '{elsewhere_keys}';
        EXECUTE ob_elsewhere;
        DEALLOCATE PREPARE ob_elsewhere;
      END IF;
    END IF;
  END IF;
END
