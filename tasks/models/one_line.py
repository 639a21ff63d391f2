"""Text of one line: what stands in lists, logs and headers must not break them or move a terminal's cursor."""

from __future__ import annotations

from django.core.validators import RegexValidator
from django.utils.translation import gettext_lazy as _

ONE_LINE = RegexValidator(
    r"^[^\x00-\x1f\x7f-\x9f\u2028\u2029]*\Z", _("It holds a control character or a line end, which is not taken here.")
)
