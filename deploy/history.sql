-- The database itself refuses changes of history: docs/admin.md#history-stays.
CREATE FUNCTION windowpane_fixed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN  -- All columns stay but those in the arguments.
  IF to_jsonb(NEW) - COALESCE(TG_ARGV, '{}') IS DISTINCT FROM to_jsonb(OLD) - COALESCE(TG_ARGV, '{}') THEN
    RAISE EXCEPTION 'rows of % are history', TG_TABLE_NAME;
  END IF;
  RETURN NULL;
END $$;
CREATE FUNCTION windowpane_kept() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN  -- At the end of the transaction: rows go only with their conversation.
  IF EXISTS (SELECT FROM memory_conversation WHERE id = OLD.conversation_id) THEN
    RAISE EXCEPTION 'rows of % are history', TG_TABLE_NAME;
  END IF;
  RETURN NULL;
END $$;
CREATE FUNCTION windowpane_never() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION 'rows of % are history', TG_TABLE_NAME;
END $$;
CREATE TRIGGER fixed AFTER UPDATE ON memory_message FOR EACH ROW
  WHEN (NEW.deleted_at IS NULL OR NEW.text <> '') EXECUTE FUNCTION
  windowpane_fixed('pinned_at', 'excluded_at', 'superseded_at', 'imported_at', 'created_at', 'signature');
CREATE TRIGGER fixed AFTER UPDATE ON memory_summary FOR EACH ROW
  WHEN (NEW.status <> 'erased' OR NEW.text <> '') EXECUTE FUNCTION
  windowpane_fixed('status', 'status_signature', 'author_id', 'created_at', 'signature');
CREATE TRIGGER fixed AFTER UPDATE ON memory_modelcall FOR EACH ROW EXECUTE FUNCTION
  windowpane_fixed('message_id', 'summary_id', 'tokens_input', 'tokens_cached', 'tokens_output',
                   'first_token_ms', 'total_ms', 'attempts', 'error', 'created_at', 'signature');
CREATE TRIGGER fixed AFTER UPDATE ON memory_prompt FOR EACH ROW EXECUTE FUNCTION windowpane_fixed();
CREATE TRIGGER fixed AFTER UPDATE ON desk_accessevent FOR EACH ROW EXECUTE FUNCTION windowpane_fixed('user_id', 'owner_id');
CREATE TRIGGER fixed AFTER UPDATE ON desk_review FOR EACH ROW EXECUTE FUNCTION windowpane_fixed('user_id');
CREATE TRIGGER fixed AFTER UPDATE ON desk_tombstone FOR EACH ROW EXECUTE FUNCTION windowpane_fixed('user_id');
CREATE CONSTRAINT TRIGGER kept AFTER DELETE ON memory_message DEFERRABLE INITIALLY DEFERRED
  FOR EACH ROW EXECUTE FUNCTION windowpane_kept();
CREATE CONSTRAINT TRIGGER kept AFTER DELETE ON memory_summary DEFERRABLE INITIALLY DEFERRED
  FOR EACH ROW EXECUTE FUNCTION windowpane_kept();
CREATE CONSTRAINT TRIGGER kept AFTER DELETE ON desk_review DEFERRABLE INITIALLY DEFERRED
  FOR EACH ROW EXECUTE FUNCTION windowpane_kept();
CREATE TRIGGER never BEFORE DELETE ON desk_accessevent FOR EACH ROW EXECUTE FUNCTION windowpane_never();
CREATE TRIGGER never BEFORE DELETE ON desk_tombstone FOR EACH ROW EXECUTE FUNCTION windowpane_never();
