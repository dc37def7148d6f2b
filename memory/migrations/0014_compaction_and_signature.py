from django.db import migrations

import memory.integrity.signatures


def rename(model, old, new):
    return migrations.RenameField(model_name=model, old_name=old, new_name=new)


class Migration(migrations.Migration):
    dependencies = [("memory", "0013_token_overhead")]

    operations = [
        *(
            rename("conversation", f"fold_{name}", f"compaction_{name}")
            for name in ("owner", "lease_until", "failures", "retry_at", "due_at")
        ),
        *(
            rename(model, "seal", "signature")
            for model in ("message", "summary", "modelcall")
        ),
        rename("summary", "status_seal", "status_signature"),
        migrations.AlterField(
            model_name='summary',
            name='status_signature',
            field=memory.integrity.signatures.SignatureField(of=('signature', 'status'), renews=True),
        ),
    ]
