import django.db.models.deletion
import django.db.models.functions.datetime
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):

    initial = True

    dependencies = [
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name='MailedLink',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('kind', models.CharField(choices=[('reset', 'Reset'), ('email', 'Email'), ('invitation', 'Invitation')], max_length=10)),
                ('token_hash', models.CharField(editable=False, max_length=64, unique=True)),
                ('email', models.EmailField(blank=True, max_length=254, verbose_name='e-mail address')),
                ('account_state', models.CharField(blank=True, editable=False, max_length=64)),
                ('asked_from', models.CharField(blank=True, editable=False, max_length=45)),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), verbose_name='created at')),
                ('expires_at', models.DateTimeField(verbose_name='works until')),
                ('used_at', models.DateTimeField(editable=False, null=True, verbose_name='used at')),
                ('made_by', models.ForeignKey(editable=False, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='+', to=settings.AUTH_USER_MODEL, verbose_name='invited by')),
                ('user', models.ForeignKey(null=True, on_delete=django.db.models.deletion.CASCADE, related_name='+', to=settings.AUTH_USER_MODEL, verbose_name='account')),
            ],
            options={
                'default_permissions': (),
            },
        ),
        migrations.CreateModel(
            name='Invitation',
            fields=[
            ],
            options={
                'verbose_name': 'invitation',
                'verbose_name_plural': 'invitations',
                'proxy': True,
                'default_permissions': ('add', 'view', 'delete'),
                'indexes': [],
                'constraints': [],
            },
            bases=('signin.mailedlink',),
        ),
        migrations.AddIndex(
            model_name='mailedlink',
            index=models.Index(fields=['user', 'created_at'], name='mailed_link_of_user'),
        ),
        migrations.AddIndex(
            model_name='mailedlink',
            index=models.Index(fields=['asked_from', 'created_at'], name='mailed_link_from'),
        ),
        migrations.AddIndex(
            model_name='mailedlink',
            index=models.Index(fields=['expires_at'], name='mailed_link_until'),
        ),
    ]
